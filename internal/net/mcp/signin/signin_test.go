package signin

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// An authority is an MCP endpoint and its authorization server. Renewal tokens
// are good for one use.
type authority struct {
	*httptest.Server
	slash string // behind the issuer in the server's own metadata

	mu        sync.Mutex
	challenge string
	renewal   string
	clients   []string // registered
	redirects []string // where they were to be sent back to
	asked     []string // grant types
}

func newAuthority(t *testing.T, slash string) *authority {
	t.Helper()
	a := &authority{slash: slash, renewal: "renew-0"}
	a.Server = httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.Close)
	return a
}

func (a *authority) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	reply := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		reply(map[string]any{"resource": a.URL + "/mcp", "authorization_servers": []string{a.URL}})
	case "/.well-known/oauth-authorization-server":
		reply(map[string]any{
			"issuer": a.URL + a.slash, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token",
			"registration_endpoint": a.URL + "/register", "response_types_supported": []string{"code"},
			"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
		})
	case "/register":
		var m struct {
			Redirects []string `json:"redirect_uris"`
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		id := fmt.Sprintf("client-%d", len(a.clients))
		a.clients, a.redirects = append(a.clients, id), append(a.redirects, m.Redirects...)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]any{"client_id": id, "redirect_uris": m.Redirects, "token_endpoint_auth_method": "none"})
	case "/authorize":
		q := r.URL.Query()
		a.challenge = q.Get("code_challenge")
		http.Redirect(w, r, q.Get("redirect_uri")+"?code=the-code&state="+url.QueryEscape(q.Get("state")), http.StatusFound)
	case "/token":
		kind := r.FormValue("grant_type")
		a.asked = append(a.asked, kind)
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		proved := r.FormValue("code") == "the-code" && base64.RawURLEncoding.EncodeToString(sum[:]) == a.challenge
		if !(kind == "authorization_code" && proved) && !(kind == "refresh_token" && r.FormValue("refresh_token") == a.renewal) {
			w.WriteHeader(http.StatusBadRequest)
			reply(map[string]any{"error": "invalid_grant"})
			return
		}
		a.renewal = fmt.Sprintf("renew-%d", len(a.asked))
		reply(map[string]any{"access_token": fmt.Sprintf("access-%d", len(a.asked)), "token_type": "Bearer", "expires_in": 3600, "refresh_token": a.renewal})
	default:
		http.NotFound(w, r)
	}
}

// options are those for signing in at a, by a person who says yes at once.
func (a *authority) options(store Store) Options {
	return Options{
		Name: "srv", URL: a.URL + "/mcp", HTTP: a.Client(), Store: store, Redirect: "http://localhost:3118/callback",
		Fetch: func(ctx context.Context, page string) (string, error) {
			c := *a.Client()
			c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
			if err != nil {
				return "", err
			}
			resp, err := c.Do(req)
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			return " " + resp.Header.Get("Location") + "\n", nil // as it is pasted
		},
	}
}

// refused is what the endpoint answers to a request with token.
func (a *authority) refused(t *testing.T, token string) (*http.Request, *http.Response) {
	t.Helper()
	req := httptest.NewRequest(http.MethodPost, a.URL+"/mcp", nil)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{}, Body: http.NoBody}
}

func storeIn(t *testing.T) Store { return Store{filepath.Join(t.TempDir(), "credentials.json")} }

func timed(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// token is what h sends.
func token(t *testing.T, h *Handler) string {
	t.Helper()
	ts, err := h.TokenSource(t.Context())
	if err != nil || ts == nil {
		t.Fatalf("no source of tokens: %v", err)
	}
	tok, err := ts.Token()
	if err != nil {
		t.Fatal(err)
	}
	return tok.AccessToken
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	for _, slash := range []string{"", "/"} {
		t.Run("issuer"+slash, func(t *testing.T) {
			t.Parallel()
			a, store := newAuthority(t, slash), storeIn(t)
			h, err := New(a.options(store))
			if err != nil {
				t.Fatal(err)
			}
			req, resp := a.refused(t, "")
			if err := h.Authorize(timed(t), req, resp); err != nil {
				t.Fatal(err)
			}
			if got := token(t, h); got != "access-1" {
				t.Errorf("got the token %q, want access-1", got)
			}
			r, ok, err := store.load(h.o.key())
			if err != nil || !ok || r.Refresh != "renew-1" || r.ClientID != "client-0" || r.TokenURL != a.URL+"/token" {
				t.Errorf("the store has %+v, %v, %v", r, ok, err)
			}
			if len(a.redirects) != 1 || a.redirects[0] != "http://localhost:3118/callback" {
				t.Errorf("registered with %q", a.redirects)
			}
			st, err := os.Stat(store.Path)
			if err != nil {
				t.Fatal(err)
			}
			if runtime.GOOS != "windows" && st.Mode().Perm() != 0o600 {
				t.Errorf("the store has mode %v, want 0600", st.Mode().Perm())
			}
		})
	}
}

func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	a := newAuthority(t, "")
	o := a.options(storeIn(t))
	o.Fetch = nil
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	req, resp := a.refused(t, "")
	if err := h.Authorize(timed(t), req, resp); !errors.Is(err, ErrNeeded) {
		t.Errorf("got %v, want ErrNeeded", err)
	}
}

// A renewal token is good for one use: of many that find the token stale, one
// renews it and the others take what it got.
func TestRenewOnce(t *testing.T) {
	t.Parallel()
	a, store := newAuthority(t, ""), storeIn(t)
	o := a.options(store)
	o.Fetch = nil
	r := Record{Name: o.Name, URL: o.URL, TokenURL: a.URL + "/token", ClientID: "client-0", Access: "stale", Refresh: "renew-0", Expiry: time.Now().Add(time.Hour)}
	if err := store.save(t.Context(), o.key(), r); err != nil {
		t.Fatal(err)
	}
	ctx := timed(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			h, err := New(o) // as if each were another process
			if err != nil {
				t.Error(err)
				return
			}
			req, resp := a.refused(t, "stale")
			if err := h.Authorize(ctx, req, resp); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(a.asked) != 1 {
		t.Errorf("renewed %d times, want once", len(a.asked))
	}
	r, _, err := store.load(o.key())
	if err != nil || r.Access != "access-1" || r.Refresh != "renew-1" {
		t.Errorf("the store has %+v, %v", r, err)
	}
}

func TestRefusedRenewalKeepsRecord(t *testing.T) {
	t.Parallel()
	a, store := newAuthority(t, ""), storeIn(t)
	o := a.options(store)
	o.Fetch = nil
	want := Record{Name: o.Name, URL: o.URL, TokenURL: a.URL + "/token", ClientID: "client-0", Access: "stale", Refresh: "void"}
	if err := store.save(t.Context(), o.key(), want); err != nil {
		t.Fatal(err)
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	req, resp := a.refused(t, "stale")
	if err := h.Authorize(timed(t), req, resp); !errors.Is(err, ErrNeeded) {
		t.Errorf("got %v, want ErrNeeded", err)
	}
	if got, _, err := store.load(o.key()); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestUnreadableStoreStays(t *testing.T) {
	t.Parallel()
	store := storeIn(t)
	const torn = `{"srv http://127.0.0.1/mcp":{"refreshTok`
	if err := os.WriteFile(store.Path, []byte(torn), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := store.save(t.Context(), "other", Record{}); err == nil {
		t.Error("saved into a store that could not be read")
	}
	if _, err := store.Forget(t.Context(), "srv"); err == nil {
		t.Error("forgot in a store that could not be read")
	}
	if got, err := os.ReadFile(store.Path); err != nil || string(got) != torn {
		t.Errorf("got %q, %v, want %q", got, err, torn)
	}
}

func TestListener(t *testing.T) {
	t.Parallel()
	l, err := Listen(0, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	u, err := url.Parse(l.Redirect())
	if err != nil {
		t.Fatal(err)
	}
	var port int
	if _, err := fmt.Sscan(u.Port(), &port); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(port, true); err == nil {
		t.Error("a fixed port that is taken was replaced by another")
	}
	pasted := make(chan string, 1)
	pasted <- "http://localhost/callback?code=pasted"
	if got, err := l.Wait(timed(t), pasted); err != nil || got != "http://localhost/callback?code=pasted" {
		t.Errorf("got %q, %v", got, err)
	}
	resp, err := http.Get("http://127.0.0.1:" + u.Port() + "/callback?code=browser")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	// Input that has ended does not end the wait for the browser.
	none := make(chan string)
	close(none)
	if got, err := l.Wait(timed(t), none); err != nil || got != "/callback?code=browser" {
		t.Errorf("got %q, %v", got, err)
	}
}
