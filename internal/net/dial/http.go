package dial

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
)

// An HTTP is a client made here, for those who hand it on without speaking
// HTTP themselves.
type HTTP = http.Client

// Stay is a Use.Redirect that follows no redirect: the answer says where to.
func Stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Fetch makes one request without a body. The caller closes the answer's.
func Fetch(ctx context.Context, c *HTTP, method, url string, header map[string]string) (status int, final string, answer map[string][]string, body io.ReadCloser, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return 0, "", nil, nil, err
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", nil, nil, err
	}
	return resp.StatusCode, resp.Request.URL.String(), resp.Header, resp.Body, nil
}

// Post sends body and returns the answer, which may have at most limit bytes.
func Post(ctx context.Context, c *HTTP, url string, header map[string]string, body []byte, limit int64) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return 0, nil, fmt.Errorf("reading the answer of %s: %w", url, err)
	}
	if int64(len(answer)) > limit {
		return 0, nil, fmt.Errorf("%s answered with more than %d bytes", url, limit)
	}
	return resp.StatusCode, answer, nil
}
