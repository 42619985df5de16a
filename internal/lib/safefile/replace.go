package safefile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// A Writer creates and replaces files. The zero value is ready. It may be
// used concurrently.
type Writer struct {
	// fault is asked before each step that can fail on a real disk; tests make it fail.
	fault func(step string) error
}

// errInPlace reports that a rename cannot keep everything that belongs to the
// file, or is not possible at all.
var errInPlace = errors.New("must be written in place")

// Replace puts data in the place of what was loaded. old is nil for a file
// that must not exist yet; the directories it needs are made. before, which
// may be nil, is called when all is ready, just before the first change that
// others can see; its error stops the replacement. On any error the old
// content is in place, or the error names the file that holds it. ErrChanged
// reports that somebody else wrote the file since old was loaded.
func (w Writer) Replace(real string, old *Snapshot, data []byte, before func() error) error {
	if before == nil {
		before = func() error { return nil }
	}
	before = sync.OnceValue(before)
	if old == nil {
		return w.create(real, data, before)
	}
	d, err := openDir(filepath.Dir(real))
	if err != nil {
		return fmt.Errorf("writing %s: %w", real, err)
	}
	defer d.close()
	if err := w.change(d, old, filepath.Base(real), data, before); err != nil {
		return fmt.Errorf("writing %s: %w", real, err)
	}
	return nil
}

// change holds the file against others like it while it is replaced.
func (w Writer) change(d *dir, old *Snapshot, name string, data []byte, before func() error) error {
	h, err := hold(d, name)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrChanged
	}
	if err != nil {
		return err // a file that may not be written is not replaced either
	}
	defer h.release()
	if !os.SameFile(h.info, old.Info) {
		return ErrChanged
	}
	err = w.rename(d, h, old, name, data, before)
	if errors.Is(err, errInPlace) {
		err = w.inPlace(d, old, name, data, before)
	}
	return err
}

func (w Writer) step(name string) error {
	if w.fault == nil {
		return nil
	}
	return w.fault(name)
}

// spareName returns a name that no other file has and that sorts beside name.
func spareName(name string) string {
	if len(name) > 100 {
		name = name[:100]
	}
	return "." + name + ".cinch-" + rand.Text()[:8]
}

// rename writes data beside the file and moves it over the old one.
func (w Writer) rename(d *dir, h *held, old *Snapshot, name string, data []byte, before func() error) (err error) {
	if links(h.info) > 1 {
		return errInPlace
	}
	spare := spareName(name)
	if err := w.writeNew(d, spare, data, 0o600, h.dress); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = d.remove(spare)
		}
	}()
	if err := before(); err != nil {
		return err
	}
	if err := w.unchanged(d, old, name); err != nil {
		return err
	}
	if err = w.step("rename"); err == nil {
		err = d.rename(spare, name)
	}
	if err != nil {
		if isStuck(err) {
			return errInPlace
		}
		return err
	}
	d.sync()
	return nil
}

// writeNew creates the file called name, lets dress change it, and makes it
// durable. On an error the file is gone again. A directory that takes no new
// files is errInPlace.
func (w Writer) writeNew(d *dir, name string, data []byte, perm fs.FileMode, dress func(*os.File) error) error {
	if err := w.step("create"); err != nil {
		return err
	}
	f, err := d.open(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		if isStuck(err) || errors.Is(err, fs.ErrPermission) {
			return errInPlace
		}
		return err
	}
	err = w.fill(f, data)
	if err == nil && dress != nil {
		if err = w.step("dress"); err == nil && dress(f) != nil {
			err = errInPlace
		}
	}
	if err == nil {
		if err = w.step("sync"); err == nil {
			err = f.Sync()
		}
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = d.remove(name)
	}
	return err
}

// fill writes data in two parts, so that a test can fail between them.
func (w Writer) fill(f *os.File, data []byte) error {
	for _, part := range [][]byte{data[:len(data)/2], data[len(data)/2:]} {
		if err := w.step("write"); err != nil {
			return err
		}
		if _, err := f.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// unchanged reports ErrChanged if the file is not what was loaded, byte for byte.
func (w Writer) unchanged(d *dir, old *Snapshot, name string) error {
	if err := w.step("verify"); err != nil {
		return err
	}
	f, err := d.open(name, os.O_RDONLY, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(info, old.Info) || info.Size() != int64(len(old.Data)) {
		return ErrChanged
	}
	if same, err := equals(f, old.Data); err != nil {
		return err
	} else if !same {
		return ErrChanged
	}
	return nil
}

func equals(f *os.File, want []byte) (bool, error) {
	buf := make([]byte, 64<<10)
	for len(want) > 0 {
		n, err := f.Read(buf)
		if n > len(want) || !bytes.Equal(buf[:n], want[:n]) {
			return false, nil
		}
		if want = want[n:]; err != nil && len(want) > 0 {
			return false, err
		}
	}
	return true, nil
}

// inPlace overwrites the file itself: the only way to keep hard links and
// owners, and to write where no name can be changed. The old bytes are put
// aside first, and put back if writing fails.
func (w Writer) inPlace(d *dir, old *Snapshot, name string, data []byte, before func() error) error {
	if err := w.step("open"); err != nil {
		return err
	}
	f, err := d.open(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	aside, drop, err := w.putAside(d, name, old.Data)
	if err != nil {
		return err
	}
	if err := before(); err != nil {
		drop()
		return err
	}
	if err := w.unchanged(d, old, name); err != nil {
		drop()
		return err
	}
	err = w.overwrite(f, int64(len(old.Data)), data)
	if err == nil {
		drop()
		return nil
	}
	// The room for the old bytes is still the file's, so this rarely fails.
	_, werr := f.WriteAt(old.Data, 0)
	if werr == nil {
		werr = f.Truncate(int64(len(old.Data)))
	}
	if werr != nil {
		return fmt.Errorf("%w; putting the old content back: %w; it is kept in %s", err, werr, aside)
	}
	drop()
	return err
}

// putAside writes a copy of the old content, in the same directory if that
// takes new files. drop removes it.
func (w Writer) putAside(d *dir, name string, data []byte) (path string, drop func(), err error) {
	spare := spareName(name)
	err = w.writeNew(d, spare, data, 0o600, nil)
	if err == nil {
		return filepath.Join(d.path, spare), func() { _ = d.remove(spare) }, nil
	}
	if !errors.Is(err, errInPlace) {
		return "", nil, err
	}
	f, err := os.CreateTemp("", "cinch-*.old")
	if err != nil {
		return "", nil, err
	}
	drop = func() { _ = os.Remove(f.Name()) }
	err = w.fill(f, data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		drop()
		return "", nil, err
	}
	return f.Name(), drop, nil
}

func (w Writer) overwrite(f *os.File, size int64, data []byte) error {
	// Take the room first: a full disk shows before the first byte is lost.
	if int64(len(data)) > size {
		if err := w.step("grow"); err != nil {
			return err
		}
		if err := grow(f, int64(len(data))); err != nil {
			return err
		}
	}
	half := len(data) / 2
	for _, part := range []struct {
		at   int
		data []byte
	}{{0, data[:half]}, {half, data[half:]}} {
		if err := w.step("overwrite"); err != nil {
			return err
		}
		if _, err := f.WriteAt(part.data, int64(part.at)); err != nil {
			return err
		}
	}
	if err := w.step("truncate"); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(data))); err != nil {
		return err
	}
	if err := w.step("sync"); err != nil {
		return err
	}
	return f.Sync()
}

// create makes a new file and the directories above it.
func (w Writer) create(real string, data []byte, before func() error) (err error) {
	if err := before(); err != nil {
		return fmt.Errorf("creating %s: %w", real, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("creating %s: %w", real, err)
		}
	}()
	d, made, err := w.makeDirs(filepath.Dir(real))
	if err != nil {
		return err
	}
	defer d.close()
	defer func() {
		if err != nil {
			for i := len(made) - 1; i >= 0; i-- {
				_ = os.Remove(made[i])
			}
		}
	}()
	name := filepath.Base(real)
	if len(name) > 255 {
		return fmt.Errorf("the name is longer than a file system allows")
	}
	spare := spareName(name)
	err = w.writeNew(d, spare, data, 0o666, nil)
	if errors.Is(err, errInPlace) {
		return fs.ErrPermission
	}
	if err != nil {
		return err
	}
	err = w.step("publish")
	if err == nil {
		err = d.publish(spare, name)
	}
	if err != nil {
		_ = d.remove(spare)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w: it exists now", ErrChanged)
		}
		return err
	}
	d.sync()
	return nil
}

// makeDirs opens a directory, making it and those above it as needed, and
// returns the ones it made.
func (w Writer) makeDirs(path string) (d *dir, made []string, err error) {
	d, err = openDir(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return d, nil, err
	}
	up := filepath.Dir(path)
	if up == path {
		return nil, nil, err
	}
	parent, made, err := w.makeDirs(up)
	if err != nil {
		return nil, made, err
	}
	defer parent.close()
	if err = w.step("mkdir"); err == nil {
		err = parent.mkdir(filepath.Base(path))
	}
	if err == nil {
		made = append(made, path)
	} else if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err == nil {
		d, err = openDir(path)
	}
	if err != nil {
		for i := len(made) - 1; i >= 0; i-- {
			_ = os.Remove(made[i])
		}
		return nil, nil, err
	}
	return d, made, nil
}
