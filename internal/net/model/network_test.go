package model

import (
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/dial"
)

// real makes a client that goes over the real network.
func real(t *testing.T, env map[string]string, o Options) *Client {
	t.Helper()
	d, err := dial.New(dial.Options{Env: func(k string) string { return env[k] }})
	if err != nil {
		t.Fatal(err)
	}
	o.HTTP = d.Client(dial.Use{Why: "model"})
	t.Cleanup(o.HTTP.CloseIdleConnections)
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOverTLS(t *testing.T) {
	t.Parallel()
	s := &script{turns: []turn{ok("one"), ok("two")}}
	srv := httptest.NewUnstartedServer(s)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	c := real(t, map[string]string{"NODE_EXTRA_CA_CERTS": ca}, Options{BaseURL: srv.URL})
	var crossed []string
	for n, text := range []string{"one", "two"} {
		got := collect(t.Context(), c, prompt("x"))
		if d := cmp.Diff(again(n+1, text), got.lines); d != "" || got.err != nil {
			t.Errorf("%v (-want +got):\n%s", got.err, d)
		}
		for _, x := range got.cross {
			crossed = append(crossed, x.Boundary+x.Detail["reused"]+x.Detail["proto"])
		}
	}
	want := []string{"connect", "TLSh2", "request", "first byteHTTP/2.0", "connecttrue", "request", "first byteHTTP/2.0"}
	if !slices.Equal(crossed, want) {
		t.Errorf("crossed %q, want %q", crossed, want)
	}
}

// What cannot get better is not tried again, and says what is wrong.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	tlsServer := httptest.NewUnstartedServer(http.NotFoundHandler())
	tlsServer.Config.ErrorLog = log.New(io.Discard, "", 0)
	tlsServer.StartTLS()
	t.Cleanup(tlsServer.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := l.Addr().String()
	l.Close()
	for _, tt := range []struct {
		name, base string
		retries    int
		want       []string
		fault      agent.Fault
		what       string
	}{
		{"unknown authority", tlsServer.URL, 5, nil, agent.FaultOther, "Unable to connect to API (SELF_SIGNED_CERT_IN_CHAIN): " + strings.TrimPrefix(tlsServer.URL, "https://") + ": the certificate is signed by an unknown authority: O=Acme Co; if something"},
		{"refused", "http://" + dead, 1, []string{"retrying 1/1 unknown 0"}, agent.FaultTransient, "Unable to connect to API (ECONNREFUSED): " + dead + ": the connection was refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := collect(t.Context(), real(t, nil, Options{BaseURL: tt.base, MaxRetries: tt.retries}), prompt("x"))
			checkFault(t, got.err, tt.fault, tt.what)
			if !slices.Equal(got.lines, tt.want) {
				t.Errorf("got %q, want %q", got.lines, tt.want)
			}
		})
	}
}

// BenchmarkTurn is a request with a long history and a short answer over
// loopback.
func BenchmarkTurn(b *testing.B) {
	srv := httptest.NewServer(&script{turns: []turn{ok("hi")}})
	defer srv.Close()
	c, err := New(Options{HTTP: srv.Client(), BaseURL: srv.URL})
	if err != nil {
		b.Fatal(err)
	}
	req := prompt("x")
	for range 200 {
		req.Messages = append(req.Messages, user(`[{"type":"tool_result","tool_use_id":"t","content":"`+strings.Repeat("x", 2000)+`"}]`))
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range c.Stream(b.Context(), req) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
