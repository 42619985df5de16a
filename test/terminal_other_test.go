//go:build !linux

package test

import "github.com/rogpeppe/go-internal/testscript"

func answer(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("there is no answer command on this system")
}

func play(ts *testscript.TestScript, neg bool, args []string) {
	ts.Fatalf("there is a terminal to drive on Linux only")
}
