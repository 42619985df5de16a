// Package signin signs requests to MCP servers with OAuth tokens. It owns the
// store of tokens, their renewal among several processes, and the way a person
// says yes in a browser; the protocol's discovery and exchange are the SDK's.
//
// It does not know servers, tools or sessions.
package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// ErrNeeded reports that a person has to sign in, and none is here.
var ErrNeeded = errors.New("somebody has to sign in")

// A Fetch shows page to a person and returns the URL the browser was sent
// back to.
type Fetch func(ctx context.Context, page string) (callback string, err error)

// Options say how one server is signed in to.
type Options struct {
	Name, URL string // of the server
	// ClientID and ClientSecret are those of a client registered beforehand.
	ClientID, ClientSecret string
	// Document is the URL of a client metadata document, "" for none.
	Document string
	// Scopes, if any, are asked for instead of those the server names.
	Scopes []string
	// Redirect is where the browser is sent back to.
	Redirect string
	HTTP     *http.Client
	Store    Store
	// Fetch asks the person; nil if there is none.
	Fetch Fetch
}

// A Handler signs the requests to one server. It implements auth.OAuthHandler
// and may be used concurrently.
type Handler struct {
	o     Options
	inner *auth.AuthorizationCodeHandler // nil without a person

	mu sync.Mutex // one person answers one question at a time
}

// New returns the handler for o. It reads and asks nothing.
func New(o Options) (*Handler, error) {
	h := &Handler{o: o}
	if o.Fetch == nil {
		return h, nil
	}
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: o.Redirect, Client: o.HTTP, RequestRefreshToken: true, AcceptUnadvertisedIss: true,
		AuthorizationCodeFetcher: h.fetch,
		NewTokenSource: func(ctx context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
			r := Record{Name: o.Name, URL: o.URL, TokenURL: c.Endpoint.TokenURL, ClientID: c.ClientID, ClientSecret: c.ClientSecret, Style: c.Endpoint.AuthStyle}
			r.take(t)
			// The scopes stay with the token, for the SDK asks it for them.
			return oauth2.StaticTokenSource(t), o.Store.save(ctx, o.key(), r)
		},
	}
	if len(o.Scopes) > 0 {
		c.ScopeFilter = func([]string) []string { return slices.Clone(o.Scopes) }
	}
	if o.Document != "" {
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: o.Document}
	}
	if o.ClientID != "" {
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: o.ClientID}
		if o.ClientSecret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: o.ClientSecret}
		}
	} else {
		c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "Cinch (" + o.Name + ")", RedirectURIs: []string{o.Redirect},
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
		}}
	}
	var err error
	h.inner, err = auth.NewAuthorizationCodeHandler(c)
	return h, err
}

func (o Options) key() string { return o.Name + " " + o.URL }

func (h *Handler) fetch(ctx context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	back, err := h.o.Fetch(ctx, a.URL)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(strings.TrimSpace(back))
	if err != nil {
		return nil, fmt.Errorf("reading the URL the browser was sent back to: %w", err)
	}
	q := u.Query()
	if e := q.Get("error"); e != "" {
		return nil, fmt.Errorf("the sign-in was refused: %s %s", e, q.Get("error_description"))
	}
	if q.Get("code") == "" {
		return nil, errors.New("the URL the browser was sent back to has no code")
	}
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}

// TokenSource implements auth.OAuthHandler. It is nil if nobody signed in.
func (h *Handler) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	_, ok, err := h.o.Store.load(h.o.key())
	if err != nil || !ok {
		return nil, err
	}
	return source{ctx, h}, nil
}

// Authorize implements auth.OAuthHandler: the token is renewed if that may
// help, or else the person asked.
func (h *Handler) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	sent := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	if resp.StatusCode == http.StatusUnauthorized && sent != "" {
		if _, err := h.renew(ctx, sent); err == nil {
			_ = resp.Body.Close()
			return nil
		}
	}
	if h.inner == nil || ctx.Err() != nil {
		_ = resp.Body.Close()
		return ErrNeeded
	}
	return h.inner.Authorize(ctx, req, resp)
}

// A source yields the stored token, renewed when it is due.
type source struct {
	ctx context.Context
	h   *Handler
}

func (s source) Token() (*oauth2.Token, error) {
	r, ok, err := s.h.o.Store.load(s.h.o.key())
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrNeeded
	}
	if t := r.token(); t.Valid() {
		return t, nil
	}
	return s.h.renew(s.ctx, r.Access)
}

// renew replaces the token stale. Of several processes one does it, for a
// renewal token is good for one use; the others find the new one in the store.
func (h *Handler) renew(ctx context.Context, stale string) (*oauth2.Token, error) {
	unlock, err := h.o.Store.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	r, ok, err := h.o.Store.load(h.o.key())
	if err != nil {
		return nil, err
	}
	if t := r.token(); ok && r.Access != stale && t.Valid() {
		return t, nil
	}
	if !ok || r.Refresh == "" {
		return nil, ErrNeeded
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	c := oauth2.Config{ClientID: r.ClientID, ClientSecret: r.ClientSecret, Endpoint: oauth2.Endpoint{TokenURL: r.TokenURL, AuthStyle: r.Style}}
	t, err := c.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, h.o.HTTP), &oauth2.Token{RefreshToken: r.Refresh}).Token()
	if err != nil {
		return nil, fmt.Errorf("renewing the token: %w", err) // what is stored stays
	}
	r.take(t)
	// Saved before it is used: the old renewal token is void by now.
	if err := h.o.Store.save(context.WithoutCancel(ctx), h.o.key(), r); err != nil {
		return nil, err
	}
	return t, nil
}
