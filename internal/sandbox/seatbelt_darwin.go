package sandbox

import (
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
)

// confine runs s under sandbox-exec. The proxy listens on a loopback port
// that is the only one the profile opens.
func (b *Box) confine(r *Run, s proc.Spec, p layout) (proc.Spec, func(), error) {
	done := func() {}
	var port uint16
	if !r.rules.OpenNetwork && r.serve != nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return s, nil, errDo("opening the proxy's port", err)
		}
		port = uint16(l.Addr().(*net.TCPAddr).Port)
		var work sync.WaitGroup
		work.Go(func() { r.serve(l, ProxyPort) })
		done = func() { _ = l.Close(); work.Wait() }
		env := append([]string(nil), s.Env...)
		for i, kv := range env {
			env[i] = strings.ReplaceAll(kv, "127.0.0.1:"+strconv.Itoa(ProxyPort), l.Addr().String())
		}
		s.Env = env
	}
	args := append([]string{seatbelt, "-p", profile(r.rules, p, port), s.Path}, s.Args[1:]...)
	s.Path, s.Args = seatbelt, args
	return s, done, nil
}
