//go:build !unix

package settings

func isNotDir(error) bool { return false }
