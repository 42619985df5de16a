// Package demo is the first thing a newcomer runs: a small Go project whose
// tests fail, and an offline model that repairs it through the real loop. It
// owns the sample and the reasoning; it must not know the program that runs
// them. Everything the model says or does follows from tool results it
// received: another sample makes another run.
package demo

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

//go:embed testdata/sample
var sample embed.FS

const root = "testdata/sample"

// Prompt is the task of the demo.
const Prompt = "The tests of this project fail. Find out why, repair the code, and show that the tests pass."

// Allow lists the permission rules that a run without anybody to ask needs.
func Allow() []string { return []string{"Bash(go test *)", "Edit"} }

// Environ is what the project's tests need to run without a network.
func Environ() []string { return []string{"GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local"} }

// Files returns the sample, as embedded: Copy gives the files their names.
func Files() fs.FS {
	f, err := fs.Sub(sample, root)
	if err != nil {
		panic(err) // root is a constant that is embedded
	}
	return f
}

// Copy writes the sample into dir, which it makes. It fails rather than
// overwrite a file.
func Copy(dir string) error {
	err := fs.WalkDir(Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(real(name)))
		if d.IsDir() {
			return os.MkdirAll(to, 0o777)
		}
		b, err := fs.ReadFile(Files(), name)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return err
		}
		_, err = f.Write(b)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("copying the sample project to %s: %w", dir, err)
	}
	return nil
}

// real is the name of a file in the copy. A go.mod would keep the sample out
// of the binary: another module's files cannot be embedded.
func real(name string) string {
	if path.Base(name) == "go.mod.txt" {
		return strings.TrimSuffix(name, ".txt")
	}
	return name
}
