//go:build !unix

package tty

import "os"

// Raw fails: raw mode is not known here.
func Raw(*os.File) (restore func(), err error) { return nil, ErrNone }

// Size is 80 by 24.
func Size(*os.File) (columns, rows int) { return 80, 24 }
