package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Auth is how requests prove who sends them. Token wins over Key, Key over
// Helper; none of them sends no credential.
type Auth struct {
	Key   string // x-api-key
	Token string // Authorization: Bearer
	// Helper, if not nil, makes a credential, which is sent in both headers.
	// It is called again when HelperTTL is over and after a 401. It must end
	// soon after ctx does.
	Helper func(ctx context.Context) (string, error)
	// HelperTTL is how long a credential of Helper is kept; 0 is five minutes.
	HelperTTL time.Duration
}

// Source names the kind of credential: "token", "key", "helper" or "none".
func (a Auth) Source() string {
	switch {
	case a.Token != "":
		return "token"
	case a.Key != "":
		return "key"
	case a.Helper != nil:
		return "helper"
	}
	return "none"
}

// ErrHelper marks errors that a credential helper is to blame for.
var ErrHelper = errors.New("your apiKeyHelper script is failing")

// A credential yields what goes into the auth headers. One caller at a time
// runs the helper; the others wait for its answer.
type credential struct {
	auth Auth
	turn chan struct{} // held while the helper runs

	mu    sync.Mutex
	value string
	made  time.Time
}

func (c *credential) init(a Auth) {
	if a.HelperTTL <= 0 {
		a.HelperTTL = 5 * time.Minute
	}
	c.auth, c.turn = a, make(chan struct{}, 1)
}

// set puts the credential into h and returns the value it used, so that a
// refusal can be told from one of an older value.
func (c *credential) set(ctx context.Context, h http.Header) (string, error) {
	switch c.auth.Source() {
	case "token":
		h.Set("Authorization", "Bearer "+c.auth.Token)
		return c.auth.Token, nil
	case "key":
		h.Set("X-Api-Key", c.auth.Key)
		return c.auth.Key, nil
	case "none":
		return "", nil
	}
	v, err := c.helped(ctx)
	if err != nil {
		return "", err
	}
	h.Set("X-Api-Key", v)
	h.Set("Authorization", "Bearer "+v)
	return v, nil
}

// helped returns the helper's credential, from memory while it is fresh.
func (c *credential) helped(ctx context.Context) (string, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	c.mu.Lock()
	v, fresh := c.value, time.Since(c.made) < c.auth.HelperTTL
	c.mu.Unlock()
	if v != "" && fresh {
		return v, nil
	}
	v, err := c.auth.Helper(ctx)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	v = strings.TrimSpace(v)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrHelper, err)
	case v == "":
		return "", fmt.Errorf("%w: it printed nothing", ErrHelper)
	}
	if at := badByte(v); at >= 0 {
		return "", fmt.Errorf("%w: character %d of its output cannot stand in a header; it must print the key alone", ErrHelper, at+1)
	}
	c.mu.Lock()
	c.value, c.made = v, time.Now()
	c.mu.Unlock()
	return v, nil
}

// refused says that the upstream did not take value. It reports whether
// asking again can yield another one.
func (c *credential) refused(value string) bool {
	if c.auth.Source() != "helper" {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.value == value {
		c.value = ""
	}
	return true
}

// A Header is one extra request header.
type Header struct {
	Name, Value string
	From        string // where it was written, for error messages
}

// ParseHeaders reads lines of "Name: value", the form of
// ANTHROPIC_CUSTOM_HEADERS. The error names line, header and the position of
// the character that cannot be sent, never a value.
func ParseHeaders(s string) ([]Header, error) {
	var hs []Header
	for i, line := range strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		from := fmt.Sprintf("ANTHROPIC_CUSTOM_HEADERS line %d", i+1)
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf(`%s: no colon: write "Name: value"`, from)
		}
		h := Header{strings.TrimSpace(name), strings.TrimSpace(value), from}
		if err := h.check(); err != nil {
			return nil, err
		}
		hs = append(hs, h)
	}
	return hs, nil
}

// check finds what cannot be sent.
func (h Header) check() error {
	from := h.From
	if from == "" {
		from = "header"
	}
	for i := 0; i < len(h.Name); i++ {
		if c := h.Name[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return fmt.Errorf("%s: invalid request header name: character %d (%q) is not allowed", from, i+1, c)
		}
	}
	if h.Name == "" {
		return fmt.Errorf("%s: the header has no name", from)
	}
	if at := badByte(h.Value); at >= 0 {
		return fmt.Errorf("%s: invalid request header value of %s: character %d (%q) is not allowed", from, h.Name, at+1, h.Value[at])
	}
	switch http.CanonicalHeaderKey(h.Name) {
	case "Content-Length", "Transfer-Encoding", "Connection", "Content-Type":
		return fmt.Errorf("%s: %s is set by the program and cannot be replaced", from, h.Name)
	}
	return nil
}

// badByte returns the index of the first byte that cannot stand in a header
// value, or -1.
func badByte(v string) int {
	for i := 0; i < len(v); i++ {
		if c := v[i]; c < ' ' && c != '\t' || c == 0x7f {
			return i
		}
	}
	return -1
}

// Credential names the kind of credential that requests carry, as Auth.Source
// does; custom headers that prove who asks count as a token.
func (c *Client) Credential() string {
	for _, h := range c.o.Headers {
		switch strings.ToLower(h.Name) {
		case "authorization", "x-api-key":
			return "token"
		}
	}
	return c.o.Auth.Source()
}
