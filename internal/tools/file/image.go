package file

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"runtime"

	"golang.org/x/image/bmp"
	"golang.org/x/image/draw"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

const (
	maxSide    = 2000      // pixels; above it the API refuses or shrinks
	maxImage   = 500 << 10 // bytes sent
	maxPixels  = 60e6      // decoded at most: 240 MB
	imageLimit = 64 << 20  // bytes read
)

type decoder struct {
	config func(io.Reader) (image.Config, error)
	whole  func(io.Reader) (image.Image, error)
	asIs   bool // the API takes the format
}

func decoderOf(kind string) decoder {
	switch kind {
	case "image/png":
		return decoder{png.DecodeConfig, png.Decode, true}
	case "image/jpeg":
		return decoder{jpeg.DecodeConfig, jpeg.Decode, true}
	case "image/gif":
		return decoder{gif.DecodeConfig, decodeGIF, true}
	case "image/webp":
		return decoder{webp.DecodeConfig, webp.Decode, true}
	case "image/bmp":
		return decoder{bmp.DecodeConfig, bmp.Decode, false}
	}
	return decoder{tiff.DecodeConfig, tiff.Decode, false}
}

// decodeGIF reads every frame, as the API will, and returns the first.
func decodeGIF(r io.Reader) (image.Image, error) {
	g, err := gif.DecodeAll(r)
	if err != nil {
		return nil, err
	}
	return g.Image[0], nil
}

// A picture is an image that the API will take.
type picture struct {
	kind string // media type
	data []byte
	dim  Dimensions
}

func (t *readTool) readImage(s *source, kind string) (agent.Result, error) {
	data, err := s.all(imageLimit)
	if err != nil {
		return agent.Result{}, err
	}
	p, err := prepare(kind, data)
	if err != nil {
		return agent.Result{}, refuse("%s cannot be shown: it begins like %s, but %v. Nothing was attached.", s.abs, kind, err)
	}
	t.o.State.put(s.real, s.info, data, span{1, 1}, 1)
	encoded := base64.StdEncoding.EncodeToString(p.data)
	r := agent.Result{
		Blocks: []agent.Block{&agent.Image{MediaType: p.kind, Data: encoded}},
		Detail: ReadDetail{Type: "image", File: ImageFile{Base64: encoded, Type: p.kind, OriginalSize: int64(len(data)), Dimensions: &p.dim}},
	}
	if d := p.dim; d.DisplayWidth != d.OriginalWidth {
		r.Blocks = append(r.Blocks, &agent.Text{Text: fmt.Sprintf("(The image is %d×%d pixels and is shown at %d×%d: multiply coordinates by %.2f.)",
			d.OriginalWidth, d.OriginalHeight, d.DisplayWidth, d.DisplayHeight, float64(d.OriginalWidth)/float64(d.DisplayWidth))})
	}
	return r, nil
}

// prepare decodes an image from end to end and makes it small enough. One
// that cannot be decoded is an error: the API would refuse it, in this
// request and in every later one.
func prepare(kind string, data []byte) (picture, error) {
	dec := decoderOf(kind)
	c, err := dec.config(bytes.NewReader(data))
	if err != nil {
		return picture{}, fmt.Errorf("its header cannot be decoded (%w)", err)
	}
	if c.Width <= 0 || c.Height <= 0 || float64(c.Width)*float64(c.Height) > maxPixels {
		return picture{}, fmt.Errorf("its size, %d×%d pixels, is beyond what is decoded here", c.Width, c.Height)
	}
	runtime.SetDefaultGOMAXPROCS() // cli keeps it low until there is work for all
	img, err := dec.whole(bytes.NewReader(data))
	if err != nil {
		return picture{}, fmt.Errorf("it cannot be decoded to its end (%w)", err)
	}
	b := img.Bounds()
	p := picture{kind: kind, data: data, dim: Dimensions{b.Dx(), b.Dy(), b.Dx(), b.Dy()}}
	if dec.asIs && b.Dx() <= maxSide && b.Dy() <= maxSide && len(data) <= maxImage {
		return p, nil
	}
	return shrink(p, img)
}

// shrink scales an image to at most maxSide and encodes it in at most
// maxImage bytes: as PNG if that is enough, else as JPEG.
func shrink(p picture, img image.Image) (picture, error) {
	for side := maxSide; side >= 16; side /= 2 {
		small := scale(img, side)
		b := small.Bounds()
		p.dim.DisplayWidth, p.dim.DisplayHeight = b.Dx(), b.Dy()
		var out bytes.Buffer
		if p.kind != "image/jpeg" {
			if err := png.Encode(&out, small); err != nil {
				return picture{}, err
			}
			if out.Len() <= maxImage {
				p.kind, p.data = "image/png", out.Bytes()
				return p, nil
			}
		}
		flat := flatten(small)
		for _, quality := range []int{85, 70, 50, 30} {
			out.Reset()
			if err := jpeg.Encode(&out, flat, &jpeg.Options{Quality: quality}); err != nil {
				return picture{}, err
			}
			if out.Len() <= maxImage {
				p.kind, p.data = "image/jpeg", out.Bytes()
				return p, nil
			}
		}
	}
	return picture{}, fmt.Errorf("it cannot be made small enough")
}

func scale(img image.Image, side int) image.Image {
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	if w <= side && h <= side {
		return img
	}
	if w >= h {
		w, h = side, max(1, h*side/w)
	} else {
		w, h = max(1, w*side/h), side
	}
	out := image.NewNRGBA(image.Rect(0, 0, w, h))
	draw.CatmullRom.Scale(out, out.Bounds(), img, b, draw.Src, nil)
	return out
}

// flatten puts an image on white, for JPEG has no transparency.
func flatten(img image.Image) image.Image {
	if o, ok := img.(interface{ Opaque() bool }); ok && o.Opaque() {
		return img
	}
	out := image.NewRGBA(image.Rect(0, 0, img.Bounds().Dx(), img.Bounds().Dy()))
	draw.Draw(out, out.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.Draw(out, out.Bounds(), img, img.Bounds().Min, draw.Over)
	return out
}
