package serve

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// stateless is the revision that knows no sessions; the ones before do.
const stateless = "2026-07-28"

// Handler serves s at /mcp to clients on this machine. Requests that a page
// in a browser made, or that came here by a name of somebody else's, are refused; so are those
// without the token, if there is one.
func Handler(s *sdk.Server, token string) http.Handler {
	server := func(*http.Request) *sdk.Server { return s }
	with := sdk.NewStreamableHTTPHandler(server, &sdk.StreamableHTTPOptions{
		SessionTimeout: time.Hour, EventStore: sdk.NewMemoryEventStore(nil),
	})
	without := sdk.NewStreamableHTTPHandler(server, &sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("MCP-Protocol-Version") >= stateless {
			without.ServeHTTP(w, r)
			return
		}
		with.ServeHTTP(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !local(r.Host):
			http.Error(w, "this server answers to the names of this machine only", http.StatusForbidden)
		case r.Header.Get("Origin") != "" && !localOrigin(r.Header.Get("Origin")):
			http.Error(w, "this server takes no requests from web pages of others", http.StatusForbidden)
		case token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+token)) != 1:
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the token that this server printed at its start is missing", http.StatusUnauthorized)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

// local reports whether a Host header names the loopback.
func local(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func localOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && local(u.Host)
}

// Listen opens addr, which must be one of this machine's own: "", a port, or
// a loopback address with a port.
func Listen(addr string) (net.Listener, error) {
	switch {
	case addr == "":
		addr = "127.0.0.1:0"
	case !strings.Contains(addr, ":"):
		addr = "127.0.0.1:" + addr
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("the address %q: %w", addr, err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("the address %q is not one of the loopback, such as 127.0.0.1:8080: tools that run commands are not offered to a network", addr)
	}
	return net.Listen("tcp", addr)
}

// HTTP serves h on l until ctx ends, and closes l.
func HTTP(ctx context.Context, l net.Listener, h http.Handler) error {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return base }}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	cancel() // streams that stand by end with it
	_ = srv.Close()
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
