//go:build !linux && !darwin && !windows

package procid

func start(int) (string, bool) { return "", false }
