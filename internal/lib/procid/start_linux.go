package procid

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// start reads the 22nd field of /proc/PID/stat: clock ticks from the boot to
// the start of the process. The second field is a name in brackets that may
// hold blanks and brackets, so fields are counted from the last bracket.
func start(pid int) (string, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	rest := data[bytes.LastIndexByte(data, ')')+1:]
	f := strings.Fields(string(rest))
	const after = 22 - 3 // the state, third field, comes first in rest
	if len(f) <= after || f[0] == "Z" {
		return "", false
	}
	return f[after], true
}
