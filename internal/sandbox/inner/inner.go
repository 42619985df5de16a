// Package inner is the helper that a confined command starts as: this very
// program, run again inside. It opens the listening sockets of the proxy in
// the new network namespace, hands them out, puts itself under Landlock and
// the system call filter, and becomes the command.
//
// It owns the order of those steps: nothing of the command runs before the
// last wall stands, and any step that fails is the end. It knows nothing of
// rules; package sandbox tells it what to do.
package inner

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/seed-eb844fcb/cinch/internal/sandbox"
)

// Failed is the exit status of a helper that could not become the command.
const Failed = 125

// Main is the helper. args are those of the program, the verb first, and
// environ is what the command gets. It returns only if something fails, with
// the exit status.
func Main(args, environ []string, stderr io.Writer) int {
	if len(args) < 3 {
		fmt.Fprintln(stderr, "cinch: this verb is for the sandbox's own use")
		return Failed
	}
	var in sandbox.Inner
	if err := json.Unmarshal([]byte(args[1]), &in); err != nil {
		fmt.Fprintf(stderr, "cinch: sandbox: reading what to do: %v\n", err)
		return Failed
	}
	err := become(in, args[2:], environ)
	fmt.Fprintf(stderr, "cinch: sandbox: %v\n", err)
	return Failed
}
