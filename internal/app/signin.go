package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/net/dial"
	"github.com/seed-eb844fcb/cinch/internal/net/mcp"
	"github.com/seed-eb844fcb/cinch/internal/net/mcp/signin"
)

// callbackPort is where the browser comes back unless another port is set.
const callbackPort = 3118

// SignIn signs in to an MCP server: show tells the person which page to open,
// and pasted carries URLs of the page they end at, for a browser on another
// machine.
func (a *App) SignIn(ctx context.Context, name string, show func(page string), pasted <-chan string) error {
	i := slices.IndexFunc(a.starting, func(c mcp.Config) bool { return c.Name == name })
	if i < 0 {
		return fmt.Errorf("%w: %q", mcp.ErrUnknown, name)
	}
	c := a.starting[i]
	if c.Type != "http" && c.Type != "sse" {
		return fmt.Errorf("one does not sign in to the %s server %s", c.Type, name)
	}
	port, fixed := callbackPort, false
	if n := a.env.number("MCP_OAUTH_CALLBACK_PORT", c.OAuth.CallbackPort); n > 0 {
		port, fixed = n, true
	}
	l, err := signin.Listen(port, fixed)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // nobody comes any more
	return a.mcp.SignIn(ctx, name, l.Redirect(), func(ctx context.Context, page string) (string, error) {
		show(page)
		return l.Wait(ctx, pasted)
	})
}

// SignOut forgets the sign-in to an MCP server.
func (a *App) SignOut(ctx context.Context, name string) error {
	found, err := a.mcp.SignOut(ctx, name)
	if err == nil && !found {
		err = fmt.Errorf("nobody is signed in to %q", name)
	}
	return err
}

// Conform runs the client scenario of the conformance suite at url.
func (a *App) Conform(ctx context.Context, url, dir string) error {
	c := mcp.Config{Name: "conformance", Type: "http", URL: url}
	c.OAuth.Document = "https://conformance-test.local/client-metadata.json"
	var more struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if raw := a.env.get("MCP_CONFORMANCE_CONTEXT"); raw != "" {
		if err := json.Unmarshal([]byte(raw), &more); err != nil {
			return errors.New("MCP_CONFORMANCE_CONTEXT is not JSON")
		}
		c.OAuth.ClientID, c.OAuth.ClientSecret = more.ID, more.Secret
	}
	return mcp.Conform(ctx, mcp.Options{
		Version: a.o.Version, UserAgent: a.userAgent(), Dir: a.o.Cwd, Credentials: filepath.Join(dir, "credentials.json"),
		HTTP:           func() *dial.HTTP { return a.dialer.Client(dial.Use{Why: "mcp"}) },
		ConnectTimeout: 30 * time.Second,
	}, c)
}
