//go:build !linux

package test

import "github.com/rogpeppe/go-internal/testscript"

func answer(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("there is no answer command on this system")
}
