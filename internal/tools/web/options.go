// Package web holds the tools WebFetch and WebSearch.
//
// It owns what is fetched and how it becomes text: the rules for URLs and
// redirects, the caps on size and time, the translation of HTML, the cache.
// It must not know how a connection is made (proxies, certificates, the
// refusal of private addresses) nor how a model is asked; functions in
// Options do that.
package web

import (
	"context"
	"io"
	"time"
)

// A Fetch makes exactly one HTTP request and does not follow redirects. It
// must refuse addresses that must not be reached after resolving the name,
// each time it is called. The body must end when ctx does; the caller closes
// it. It may be compressed with gzip or deflate if the header says so.
type Fetch func(ctx context.Context, method, url string, header map[string]string) (status int, finalURL string, answer map[string][]string, body io.ReadCloser, err error)

// Options are what the tools stand on. Functions may be called concurrently.
type Options struct {
	// Fetch makes requests. Nil: there is no WebFetch.
	Fetch Fetch
	// UserAgent is sent with each request.
	UserAgent string
	// Ask puts a question about a page to a small model. What the page says
	// is data: it must not be obeyed. Nil, or a failure: the page itself is
	// the answer.
	Ask func(ctx context.Context, prompt, content string) (string, error)
	// SaveDir is where files that are no text are kept, so that they can be
	// read by other tools. "": they are refused.
	SaveDir string
	// TTL is how long a page stays in the cache; 0 is 15 minutes, less than 0 is none.
	TTL time.Duration
	// Timeout bounds one fetch, redirects included; 0 is one minute.
	Timeout time.Duration
	// MaxBytes bounds what is read of one page after decompression; 0 is 10 MB.
	MaxBytes int64

	// Search performs a web search; text is what the model gets. Nil: there
	// is no WebSearch.
	Search func(ctx context.Context, query string, allowed, blocked []string) (text string, err error)
	// MaxSearches caps the searches of one session; 0 is 200.
	MaxSearches int
	// Session names the conversation; the count of searches starts anew when
	// it changes. May be nil.
	Session func() string
}
