// Package model is the first network plane: it speaks the Messages API to one
// upstream. It owns the bytes of a request, the state of a response stream,
// the clocks, the retries and what the upstream is known to accept; nothing
// else in the program sends a request to a model. It must not know the loop,
// tools, settings or where its HTTP client comes from.
//
// A stream that breaks is repaired here as long as no content block was
// complete, because then nobody has acted on it: the attempt is taken back by
// a Reset and made again. From the first complete block on the stream ends
// with a *agent.ModelError of FaultTruncated, and the caller goes on from
// what it has.
package model

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/model/caps"
	"github.com/seed-eb844fcb/cinch/internal/net/model/catalog"
	"github.com/seed-eb844fcb/cinch/internal/net/model/limit"
)

// Types of the packages below under the names that callers use.
type (
	Models = catalog.Models
	Spec   = catalog.Spec
	Cap    = caps.Cap
	Limits = limit.Limits
)

// Default is the model name that stands for the one nobody chose.
const Default = catalog.Default

// FirstParty is the base URL of the public API.
const FirstParty = "https://api.anthropic.com"

// version is the value of the anthropic-version header.
const version = "2023-06-01"

// Options configure a Client. HTTP is required; FromEnv fills what the
// environment says.
type Options struct {
	// HTTP sends the requests. It must have no Timeout: the clocks are here.
	// Redirects are followed within a host only.
	HTTP *http.Client
	// BaseURL is where /v1/messages lives; "" is FirstParty.
	BaseURL string
	Auth    Auth
	// Headers go out with every request and replace ours of the same name.
	Headers []Header
	// UserAgent is sent as it is; "" is "cinch".
	UserAgent string
	// Session, if not nil, is asked for the session id of each request.
	Session func() string
	// UserID, if not "", is sent as metadata.user_id.
	UserID string
	Models catalog.Models
	// Betas are further values of anthropic-beta.
	Betas []string
	// Without names features that are never used, With those that are used
	// although the upstream is not known to take them, as Caps names them.
	// "betas" in Without stands for all that need a beta header, "cache haiku"
	// for the cache with one family of models.
	Without, With []string
	// Fallback are the models to switch to, in this order, when the one that
	// was asked for is overloaded or unavailable.
	Fallback []string
	// MaxRetries is the number of further attempts; 0 is DefaultRetries, a
	// negative number none. More than 15 are not made.
	MaxRetries int
	// Patient retries rate limits and overload without end and without
	// regard to the total clock, for runs that nobody waits for.
	Patient bool
	// StreamOnly never asks for an answer in one piece when a stream broke.
	StreamOnly bool
	Clocks     Clocks
	// Extra is merged into every request body; it replaces what is there,
	// but for model, messages, system, tools and stream.
	Extra map[string]json.RawMessage
	// Think, if its Type is not "", replaces the models' default of thinking.
	Think agent.Thought
	// MarkTTL is the life of what the moving cache mark caches: "" or "1h".
	MarkTTL string
	// Sent is told of each request for an answer before it goes out, from the
	// goroutine that waits for the answer. Nil: nobody is.
	Sent func(Sending)
	// Local is the zone in which reset times are told; nil is time.Local.
	Local *time.Location
}

// A Sending is one request on its way: of which conversation, and its body.
type Sending struct {
	At             time.Time
	Purpose, Agent string // as in the request
	Model          string // its id
	Attempt        int    // counts from 1
	// Pieces are the body, to be joined. They are shared: nobody may change them.
	Pieces [][]byte
}

// DefaultRetries is how often a request is tried again.
const DefaultRetries = 10

const maxRetries = 15

// Clocks bound every wait. A zero field is its default. A wait longer than
// ten seconds is told by Waiting deltas.
type Clocks struct {
	// Connect bounds name lookup, TCP, proxy and TLS: 30 s.
	Connect time.Duration
	// FirstByte bounds the wait for response headers once connected: 360 s.
	FirstByte time.Duration
	// Whole is FirstByte for answers in one piece: 600 s.
	Whole time.Duration
	// Idle bounds the time between two bytes; pings and comments count: 300 s.
	Idle time.Duration
	// Events bounds the time between two events that are no pings: 30 min.
	Events time.Duration
	// Total bounds retrying: no attempt starts and no wait for one ends
	// later than this after the call of Stream: 10 min. An answer that is
	// under way is not cut by it.
	Total time.Duration
}

func (c Clocks) filled() Clocks {
	set := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	set(&c.Connect, 30*time.Second)
	set(&c.FirstByte, 360*time.Second)
	set(&c.Whole, 600*time.Second)
	set(&c.Idle, 300*time.Second)
	set(&c.Events, 30*time.Minute)
	set(&c.Total, 10*time.Minute)
	return c
}

// A Client is an agent.Provider for one upstream that speaks the Messages
// API. Its methods may be called concurrently.
type Client struct {
	o    Options
	http *http.Client
	base *url.URL
	cred credential
	caps *caps.Table
	seq  atomic.Int64

	mu     sync.Mutex
	limits limit.Limits // of the newest answer
}

var _ agent.Provider = (*Client)(nil)

// New returns a client. It does no I/O. The error names the option that
// cannot be used and where it comes from.
func New(o Options) (*Client, error) {
	if o.HTTP == nil {
		return nil, errors.New("model: Options.HTTP is nil")
	}
	base, err := baseURL(o.BaseURL)
	if err != nil {
		return nil, err
	}
	for _, h := range o.Headers {
		if err := h.check(); err != nil {
			return nil, err
		}
		if http.CanonicalHeaderKey(h.Name) == "Anthropic-Beta" {
			o.Betas = append(o.Betas[:len(o.Betas):len(o.Betas)], strings.FieldsFunc(h.Value, func(r rune) bool { return r == ',' || r == ' ' })...)
		}
	}
	if o.UserAgent == "" {
		o.UserAgent = "cinch"
	}
	if o.MaxRetries == 0 {
		o.MaxRetries = DefaultRetries
	}
	o.MaxRetries = max(0, min(o.MaxRetries, maxRetries))
	o.Clocks = o.Clocks.filled()
	c := &Client{o: o, base: base, caps: caps.New(base.Host == "api.anthropic.com", o.Without, o.With)}
	c.http = &http.Client{Transport: o.HTTP.Transport, Jar: o.HTTP.Jar, CheckRedirect: sameHost}
	c.cred.init(o.Auth)
	return c, nil
}

// Upstream is the host, with its port if it has one, that is asked.
func (c *Client) Upstream() string { return c.base.Host }

// Resolve tells what a model name stands for.
func (c *Client) Resolve(name string) catalog.Spec { return c.o.Models.Resolve(name) }

// Caps returns what is known about the upstream: one entry for each feature,
// and one more for each model that lacks it.
func (c *Client) Caps() []Cap { return c.caps.List() }

// Allows reports whether requests to model may use a feature, by the name
// that Request.Features and Caps give it.
func (c *Client) Allows(feature, model string) bool {
	return c.caps.Allows(feature, c.o.Models.Resolve(model).ID)
}

// Limits returns the rate limits that the newest answer told of.
func (c *Client) Limits() Limits {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limits
}

func (c *Client) noteLimits(h http.Header) Limits {
	l, ok := limit.Read(h, time.Now())
	if ok {
		c.mu.Lock()
		c.limits = l
		c.mu.Unlock()
	}
	return l
}

// baseURL checks where to send requests.
func baseURL(s string) (*url.URL, error) {
	if s = strings.TrimSpace(s); s == "" {
		s = FirstParty
	}
	u, err := url.Parse(s)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, errors.New("the base URL of the API is none: write http://HOST or https://HOST (ANTHROPIC_BASE_URL)")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

// sameHost follows a redirect only where the credentials may go.
func sameHost(req *http.Request, via []*http.Request) error {
	if len(via) >= 5 || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}
