package safefile

import (
	"errors"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/lib/winpath"
)

// Abs returns path, as a model or a person wrote it, in absolute and clean
// form. cwd is where relative paths start; home, unless empty, is what a
// leading "~" stands for.
func Abs(path, cwd, home string) (string, error) {
	switch {
	case path == "":
		return "", errors.New("the path is empty")
	case strings.Contains(path, "\x00"):
		return "", errors.New("the path has a zero byte in it")
	case home != "" && (path == "~" || strings.HasPrefix(path, "~/")):
		path = filepath.Join(home, path[1:])
	}
	if runtime.GOOS == "windows" {
		return winpath.Canonical(path, cwd)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(cwd, path)
	}
	if !filepath.IsAbs(path) {
		return "", errors.New("the path is relative and there is no working directory")
	}
	return filepath.Clean(path), nil
}
