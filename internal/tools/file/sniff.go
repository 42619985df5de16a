package file

import (
	"bytes"
	"strings"
)

// sniff names the image or document type that the first bytes of a file
// tell, "" for any other.
func sniff(head []byte) string {
	switch {
	case has(head, "\x89PNG\r\n\x1a\n"):
		return "image/png"
	case has(head, "\xff\xd8\xff"):
		return "image/jpeg"
	case has(head, "GIF87a"), has(head, "GIF89a"):
		return "image/gif"
	case has(head, "RIFF") && len(head) >= 12 && string(head[8:12]) == "WEBP":
		return "image/webp"
	case has(head, "BM") && len(head) >= 18 && head[15]|head[16]|head[17] == 0 && head[6]|head[7]|head[8]|head[9] == 0:
		return "image/bmp"
	case has(head, "II*\x00"), has(head, "MM\x00*"):
		return "image/tiff"
	case has(bytes.TrimLeft(head, "\xef\xbb\xbf \r\n\t\x00"), "%PDF-"):
		return "application/pdf"
	}
	return ""
}

func has(head []byte, magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }

// imageExt are the endings that promise an image of a kind the model can see.
var imageExt = map[string]bool{
	".png": true, ".jpg": true, ".jpeg": true, ".gif": true, ".webp": true, ".bmp": true, ".tif": true, ".tiff": true,
	".heic": true, ".heif": true, ".avif": true,
}

// binaryKind names well-known binary formats by their first bytes.
func binaryKind(head []byte) string {
	for _, k := range []struct{ magic, kind string }{
		{"\x7fELF", "an ELF program or library"},
		{"MZ", "a Windows program or library"},
		{"\xcf\xfa\xed\xfe", "a Mach-O program or library"},
		{"\xca\xfe\xba\xbe", "a Java class or universal Mach-O file"},
		{"\x00asm", "a WebAssembly module"},
		{"PK\x03\x04", "a ZIP archive or a document packed as one"},
		{"\x1f\x8b", "gzip data"},
		{"BZh", "bzip2 data"},
		{"\xfd7zXZ\x00", "xz data"},
		{"\x28\xb5\x2f\xfd", "zstd data"},
		{"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"},
		{"Rar!\x1a\x07", "a RAR archive"},
		{"!<arch>\n", "an ar archive"},
		{"SQLite format 3\x00", "an SQLite database"},
		{"OggS", "Ogg media"},
		{"ID3", "MP3 audio"},
		{"fLaC", "FLAC audio"},
		{"RIFF", "RIFF media"},
		{"wOFF", "a web font"},
		{"wOF2", "a web font"},
		{"\x00\x01\x00\x00\x00", "a TrueType font"},
		{"OTTO", "an OpenType font"},
		{"\xd0\xcf\x11\xe0", "an old Office document"},
	} {
		// Text may happen to begin with such letters.
		if has(head, k.magic) && binary(head) {
			return k.kind
		}
	}
	if len(head) >= 12 && string(head[4:8]) == "ftyp" {
		if brand := string(head[8:12]); strings.HasPrefix(brand, "hei") || strings.HasPrefix(brand, "mif") || strings.HasPrefix(brand, "avif") {
			return "a HEIC or AVIF image, which must be converted to PNG or JPEG first"
		}
		return "MP4 media"
	}
	return ""
}
