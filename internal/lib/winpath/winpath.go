// Package winpath brings the many spellings of a Windows path into one form,
// so that rules see the file that will be opened. It works on text alone, on
// every system, and knows no files.
package winpath

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrDevice reports the name of a device, such as NUL, or a device path.
	ErrDevice = errors.New("the path names a device")
	// ErrStream reports an alternate data stream.
	ErrStream = errors.New("the path names an alternate data stream")
	// ErrDriveRelative reports a path like C:x, which depends on a hidden
	// current directory of that drive.
	ErrDriveRelative = errors.New("the path is relative to a drive's own current directory")
)

// Canonical returns the absolute form of p, X:\a\b or \\server\share\a, with
// the working directory cwd as the start of relative paths. It understands
// \\?\ prefixes, either slash, and the drive spellings /c/, /cygdrive/c/ and
// /mnt/c/. Dots and spaces at the end of names go, as Windows drops them.
func Canonical(p, cwd string) (string, error) {
	volume, rest, err := split(p, cwd)
	if err != nil {
		return "", fmt.Errorf("path %q: %w", p, err)
	}
	var names []string
	for name := range strings.SplitSeq(rest, `\`) {
		switch name {
		case "", ".":
			continue
		case "..":
			if len(names) > 0 {
				names = names[:len(names)-1]
			}
			continue
		}
		if strings.Contains(name, ":") {
			return "", fmt.Errorf("path %q: %w", p, ErrStream)
		}
		if name = strings.TrimRight(name, ". "); name == "" {
			continue
		}
		if device(name) {
			return "", fmt.Errorf("path %q: %w", p, ErrDevice)
		}
		names = append(names, name)
	}
	return volume + `\` + strings.Join(names, `\`), nil
}

// split returns the volume, X: or \\server\share, and what follows it, with
// backslashes only.
func split(p, cwd string) (volume, rest string, err error) {
	slash := strings.HasPrefix(p, "/") // as a Unix shell writes drives
	p = strings.ReplaceAll(p, "/", `\`)
	for _, prefix := range []string{`\\?\`, `\??\`} {
		if after, ok := strings.CutPrefix(p, prefix); ok {
			if unc, ok := cutFold(after, `UNC\`); ok {
				return share(`\\` + unc)
			}
			p = after
			if !drive(p) {
				return "", "", ErrDevice
			}
		}
	}
	switch {
	case strings.HasPrefix(p, `\\.\`):
		return "", "", ErrDevice
	case strings.HasPrefix(p, `\\`):
		return share(p)
	case drive(p):
		if len(p) > 2 && p[2] != '\\' || len(p) == 2 {
			return "", "", ErrDriveRelative
		}
		return strings.ToUpper(p[:2]), p[2:], nil
	case strings.HasPrefix(p, `\`):
		for _, prefix := range []string{`\cygdrive\`, `\mnt\`, `\`} {
			after, ok := cutFold(p, prefix)
			if slash && ok && len(after) > 0 && letter(after[0]) && (len(after) == 1 || after[1] == '\\') {
				return strings.ToUpper(after[:1]) + ":", after[1:], nil
			}
		}
		volume, _, err = split(cwd, "")
		return volume, p, err
	case cwd == "":
		return "", "", errors.New("the working directory is not absolute")
	}
	volume, rest, err = split(cwd, "")
	return volume, rest + `\` + p, err
}

// share splits \\server\share\rest.
func share(p string) (volume, rest string, err error) {
	parts := strings.SplitN(strings.TrimLeft(p, `\`), `\`, 3)
	if len(parts) < 2 || !shareName(parts[0]) || !shareName(parts[1]) {
		return "", "", errors.New("a network path needs a server and a share")
	}
	if len(parts) == 3 {
		rest = parts[2]
	}
	return `\\` + parts[0] + `\` + parts[1], rest, nil
}

func shareName(s string) bool {
	return strings.Trim(s, ". ") != "" && !strings.ContainsAny(s, `:?*"<>|`)
}

func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

func drive(p string) bool { return len(p) >= 2 && letter(p[0]) && p[1] == ':' }

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// device reports whether name is that of a device; an extension does not change that.
func device(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	if rest, ok := strings.CutPrefix(stem, "COM"); ok {
		return port(rest)
	}
	if rest, ok := strings.CutPrefix(stem, "LPT"); ok {
		return port(rest)
	}
	return false
}

func port(s string) bool {
	switch s {
	case "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³":
		return true
	}
	return false
}
