package web

import (
	"sync"
	"time"
)

// A cache holds pages for ttl, the newest of them, up to max bytes of text.
// It may be used concurrently.
type cache struct {
	ttl time.Duration
	max int

	mu    sync.Mutex
	pages map[string]cached
	size  int
}

type cached struct {
	page page
	at   time.Time
}

func (c *cache) look(key string) (page, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.pages[key]
	if !ok || time.Since(e.at) > c.ttl {
		return page{}, false
	}
	return e.page, true
}

func (c *cache) keep(key string, p page) {
	if c.ttl < 0 || len(p.text) > c.max {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pages == nil {
		c.pages = map[string]cached{}
	}
	c.drop(key)
	for k, e := range c.pages {
		if time.Since(e.at) > c.ttl {
			c.drop(k)
		}
	}
	for c.size+len(p.text) > c.max {
		oldest := ""
		for k, e := range c.pages {
			if oldest == "" || e.at.Before(c.pages[oldest].at) {
				oldest = k
			}
		}
		c.drop(oldest)
	}
	c.pages[key] = cached{p, time.Now()}
	c.size += len(p.text)
}

func (c *cache) drop(key string) {
	if e, ok := c.pages[key]; ok {
		c.size -= len(e.page.text)
		delete(c.pages, key)
	}
}
