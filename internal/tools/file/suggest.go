package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// suggest names a file that the model may have meant by a path that does not
// exist: one beside it that differs in case or ending, or the same path below
// the working directory. It is a sentence with a blank before it, or "".
func (e *Editor) suggest(abs string) string {
	dir, base := filepath.Split(abs)
	if d, err := os.Open(dir); err == nil {
		defer d.Close()
		names, _ := d.Readdirnames(2000) // enough to be helpful, bounded in a huge directory
		stem := strings.TrimSuffix(base, filepath.Ext(base))
		near := ""
		for _, n := range names {
			switch {
			case e.o.Deny(filepath.Join(dir, n)):
			case strings.EqualFold(n, base):
				return fmt.Sprintf(" Did you mean %s?", filepath.Join(dir, n))
			case stem != "" && strings.TrimSuffix(n, filepath.Ext(n)) == stem && (near == "" || n < near):
				near = n
			}
		}
		if near != "" {
			return fmt.Sprintf(" Did you mean %s?", filepath.Join(dir, near))
		}
	}
	// A path that lost the working directory, or a part of it.
	cwd := e.o.Cwd()
	for rest := strings.TrimPrefix(abs, string(filepath.Separator)); rest != ""; {
		if p := filepath.Join(cwd, rest); p != abs && !e.o.Deny(p) {
			if _, err := os.Lstat(p); err == nil {
				return fmt.Sprintf(" Did you mean %s?", p)
			}
		}
		_, after, ok := strings.Cut(rest, string(filepath.Separator))
		if !ok {
			break
		}
		rest = after
	}
	return ""
}
