//go:build !linux

package proc

func deafen() (hear func(), err error) { return func() {}, nil }
