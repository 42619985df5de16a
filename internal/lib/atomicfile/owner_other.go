//go:build !unix

package atomicfile

import "io/fs"

func foreign(fs.FileInfo) (uid, gid int, ok bool) { return 0, 0, false }
