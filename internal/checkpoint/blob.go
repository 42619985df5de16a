package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

func (s *Store) blob(sum string) string {
	return filepath.Join(s.dir, "blobs", sum[:2], sum[2:])
}

// look describes what stands at path, without following a link.
func look(path string) (state, error) {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err != nil && isNotDir(err) {
		return state{Kind: "absent"}, nil
	}
	if err != nil {
		return state{}, err
	}
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return state{}, err
		}
		return state{Kind: "link", Why: target}, nil
	case fi.IsDir():
		return state{Kind: "dir"}, nil
	case !fi.Mode().IsRegular():
		return state{Kind: "other", Why: fi.Mode().Type().String()}, nil
	case links(fi) > 1:
		return state{Kind: "other", Why: hardLink}, nil
	case fi.Size() > MaxFile:
		return state{Kind: "other", Why: fmt.Sprintf("it is larger than %d MB", MaxFile>>20)}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return state{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return state{}, err
	}
	return state{Kind: "file", Sum: hex.EncodeToString(h.Sum(nil)), Mode: fi.Mode(), Size: n}, nil
}

// save describes what stands at path and keeps its content.
func (s *Store) save(path string) (state, error) {
	st, err := look(path)
	if err != nil || st.Kind != "file" {
		return st, err
	}
	if _, err := os.Stat(s.blob(st.Sum)); err == nil {
		return st, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return st, err
	}
	sum := sha256.Sum256(data)
	st.Sum, st.Size = hex.EncodeToString(sum[:]), int64(len(data)) // what was read is what is kept
	return st, s.put(st.Sum, data)
}

// put keeps data under its sum. A half-written blob never gets the name.
func (s *Store) put(sum string, data []byte) error {
	name := s.blob(sum)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already if all went well
	if _, err := io.Copy(f, bytes.NewReader(data)); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// content returns what was kept under sum, checked.
func (s *Store) content(sum string) ([]byte, error) {
	data, err := os.ReadFile(s.blob(sum))
	if err != nil {
		return nil, err
	}
	if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("the kept content %s is damaged", sum[:12])
	}
	return data, nil
}

// hardLink is why a file with another name is not covered: to write it in
// place would change it under that name too, to replace it would part the two.
const hardLink = "it is a hard link"

// Sweep removes the stores below dir whose index nobody has written since
// before. What cannot be removed is tried next time.
func Sweep(dir string, before time.Time) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range list {
		store := filepath.Join(dir, e.Name())
		fi, err := os.Stat(filepath.Join(store, "index.jsonl"))
		if errors.Is(err, fs.ErrNotExist) {
			fi, err = os.Stat(store) // nothing was ever noted, or half of it was removed
		}
		if err == nil && fi.ModTime().Before(before) {
			_ = os.RemoveAll(store)
		}
	}
}
