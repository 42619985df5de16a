// Package safefile opens and replaces a user's files by path. What was
// resolved and approved is what is opened: a symbolic link put in the way
// afterwards is an error, never a detour. A replaced file holds its old
// content or its new, and keeps its mode, owner, attributes and hard links.
//
// It owns path resolution and the order of system calls. It decides nothing
// about which path may be touched, and does not know what the bytes mean.
package safefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

var (
	// ErrChanged reports a file that is no longer what was loaded or resolved.
	ErrChanged = errors.New("the file changed in the meantime")
	// ErrLoop reports a chain of symbolic links that does not end.
	ErrLoop = errors.New("too many symbolic links")
	// ErrTooBig reports a file above the caller's limit.
	ErrTooBig = errors.New("the file is too big")
)

// A KindError reports a path that is no regular file.
type KindError struct {
	Path string
	Mode fs.FileMode
}

func (e *KindError) Error() string { return e.Path + " is " + Kind(e.Mode) }

// Kind names the type of file that m describes, with its article.
func Kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case !m.IsRegular():
		return "not a regular file"
	}
	return "a file"
}

// maxLinks is how many links Linux follows in one path.
const maxLinks = 40

// Resolve follows the symbolic links of an absolute path. It returns every
// name the file has on the way: the path itself, cleaned, then the path after
// each link; the last one has no link in it and is what Open and Replace
// take. Parts that do not exist are kept as they are.
func Resolve(path string) (names []string, err error) {
	path = filepath.Clean(path)
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("resolving %q: not an absolute path", path)
	}
	names = []string{path}
	for range maxLinks {
		next, err := followFirst(path)
		if err != nil {
			return names, fmt.Errorf("resolving %s: %w", names[0], err)
		}
		if next == "" {
			return names, nil
		}
		names = append(names, next)
		path = next
	}
	return names, fmt.Errorf("resolving %s: %w", names[0], ErrLoop)
}

// followFirst replaces the first symbolic link in path; "" if it has none.
func followFirst(path string) (string, error) {
	root := filepath.VolumeName(path) + string(filepath.Separator)
	at, rest := root, strings.TrimPrefix(path, root)
	for rest != "" {
		name, more, _ := strings.Cut(rest, string(filepath.Separator))
		full := filepath.Join(at, name)
		info, err := os.Lstat(full)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", nil
		case err != nil && isNotDir(err):
			return "", nil // opening it will say so
		case err != nil:
			return "", err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(full)
			if err != nil {
				return "", err
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(at, target)
			}
			return filepath.Join(target, more), nil
		}
		at, rest = full, more
	}
	return "", nil
}

// Open opens a regular file for reading; real is the last name from Resolve.
// It never blocks on a pipe or device. It fails with fs.ErrNotExist, a
// *KindError, or ErrChanged if a link has taken the place of a part of real.
// The caller closes the file.
func Open(real string) (*os.File, fs.FileInfo, error) {
	f, err := openNoLinks(real, os.O_RDONLY)
	if err != nil {
		return nil, nil, fmt.Errorf("opening %s: %w", real, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &KindError{real, info.Mode()}
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// A Snapshot is a file's content at one moment.
type Snapshot struct {
	Real string
	Data []byte
	Info fs.FileInfo
}

// Load reads a whole file of at most limit bytes. It fails as Open does, or
// with ErrTooBig.
func Load(real string, limit int64) (*Snapshot, error) {
	f, info, err := Open(real)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// The size is a hint only: files in /proc have none.
	data := make([]byte, 0, min(max(info.Size(), 512)+1, limit+1))
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):min(cap(data), int(limit)+1)])
		data = data[:len(data)+n]
		if int64(len(data)) > limit {
			return nil, fmt.Errorf("reading %s: %w: more than %d bytes", real, ErrTooBig, limit)
		}
		if err == io.EOF {
			return &Snapshot{Real: real, Data: data, Info: info}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", real, err)
		}
	}
}
