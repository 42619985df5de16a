//go:build !linux

package checkpoint

import (
	"io/fs"
	"os"
	"path/filepath"
)

func stampOf(fi fs.FileInfo) stamp {
	return stamp{size: fi.Size(), mode: fi.Mode(), changed: fi.ModTime().UnixNano()}
}

// read lists dir.
func (l *listing) read(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if e.Name() != ".git" {
				l.dirs = append(l.dirs, path)
			}
		case e.Type()&^fs.ModeSymlink != 0:
		case len(l.files) >= MaxScan:
			l.cut = true
			return
		default:
			if fi, err := e.Info(); err == nil {
				l.files = append(l.files, stamped{path, stampOf(fi)})
			}
		}
	}
}
