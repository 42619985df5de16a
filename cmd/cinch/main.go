// Command cinch is an agent harness for coding. See internal/cli.
package main

import (
	"os"

	"github.com/seed-eb844fcb/cinch/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
