//go:build !linux

package safefile

import "os"

// checkOpened reports ErrChanged unless path has no symbolic link in it now
// and leads to what f is.
func checkOpened(f *os.File, path string) (*os.File, error) {
	names, err := Resolve(path)
	if err == nil && len(names) > 1 {
		err = ErrChanged
	}
	if err == nil {
		var mine, there os.FileInfo
		if mine, err = f.Stat(); err == nil {
			if there, err = os.Lstat(path); err == nil && !os.SameFile(mine, there) {
				err = ErrChanged
			}
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
