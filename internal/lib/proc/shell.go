package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Shell returns the Spec that has a shell run script. shell is "" for the
// system's POSIX shell. args become $1, $2 …
func Shell(shell, script string, args ...string) Spec {
	if shell == "" {
		shell = "/bin/sh"
		if runtime.GOOS == "windows" {
			shell = "sh" // the one that comes with git
		}
	}
	name := strings.TrimSuffix(filepath.Base(shell), ".exe")
	return Spec{Path: shell, Args: append([]string{shell, "-c", script, name}, args...)}
}

// Quote returns s as one word of a POSIX shell.
func Quote(s string) string {
	if s != "" && strings.IndexFunc(s, needsQuote) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func needsQuote(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("-_./:,@%+=", r)
}

// Look finds the program name in the directories of path, a list as the PATH
// variable holds it. A name with a slash is returned as it is. Directories
// that are not absolute are passed over: what a command means must not depend
// on where it is run.
func Look(name, path string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("looking for a program: %w", exec.ErrNotFound)
	}
	if strings.ContainsRune(name, filepath.Separator) || strings.Contains(name, "/") {
		return name, nil
	}
	suffixes := []string{""}
	if runtime.GOOS == "windows" && filepath.Ext(name) == "" {
		suffixes = []string{".exe", ".com", ".bat", ".cmd"}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		for _, suffix := range suffixes {
			file := filepath.Join(dir, name+suffix)
			fi, err := os.Stat(file)
			if err == nil && fi.Mode().IsRegular() && (fi.Mode()&0o111 != 0 || runtime.GOOS == "windows") {
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("looking for %s in PATH: %w", name, exec.ErrNotFound)
}
