//go:build !linux

package checkpoint

import "io/fs"

func stampOf(fi fs.FileInfo) stamp {
	return stamp{size: fi.Size(), mode: fi.Mode(), changed: fi.ModTime()}
}
