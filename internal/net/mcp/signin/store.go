package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"time"

	"golang.org/x/oauth2"

	"github.com/seed-eb844fcb/cinch/internal/lib/atomicfile"
)

// A Record is what is kept of one sign-in.
type Record struct {
	Name         string           `json:"name"`
	URL          string           `json:"url"`
	TokenURL     string           `json:"tokenUrl"`
	ClientID     string           `json:"clientId"`
	ClientSecret string           `json:"clientSecret,omitempty"`
	Style        oauth2.AuthStyle `json:"authStyle"`
	Access       string           `json:"accessToken"`
	Refresh      string           `json:"refreshToken,omitempty"`
	Kind         string           `json:"tokenType,omitempty"`
	Expiry       time.Time        `json:"expiry,omitzero"`
}

func (r Record) token() *oauth2.Token {
	return &oauth2.Token{AccessToken: r.Access, RefreshToken: r.Refresh, TokenType: r.Kind, Expiry: r.Expiry}
}

// take takes t over; a renewal token that was not replaced stays good.
func (r *Record) take(t *oauth2.Token) {
	r.Access, r.Kind, r.Expiry = t.AccessToken, t.TokenType, t.Expiry
	if t.RefreshToken != "" {
		r.Refresh = t.RefreshToken
	}
}

// A Store is the file that keeps sign-ins, readable by its owner alone. Several
// processes may use it. A file that cannot be read is never replaced.
type Store struct{ Path string }

func decode(raw []byte) (map[string]Record, error) {
	m := map[string]Record{}
	if len(raw) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("reading the store of sign-ins: %w", err)
	}
	return m, nil
}

func (s Store) load(key string) (Record, bool, error) {
	raw, err := os.ReadFile(s.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, fmt.Errorf("reading the store of sign-ins: %w", err)
	}
	m, err := decode(raw)
	r, ok := m[key]
	return r, ok, err
}

func (s Store) change(ctx context.Context, f func(map[string]Record)) error {
	return atomicfile.Writer{}.Update(ctx, atomicfile.Update{
		Name: s.Path, Perm: 0o600, Lock: s.Path + ".lock", Wait: 10 * time.Second,
		Change: func(old []byte) ([]byte, error) {
			m, err := decode(old)
			if err != nil {
				return nil, err
			}
			f(m)
			return json.MarshalIndent(m, "", "  ")
		},
	})
}

func (s Store) save(ctx context.Context, key string, r Record) error {
	return s.change(ctx, func(m map[string]Record) { m[key] = r })
}

// Forget drops what is kept of the server called name.
func (s Store) Forget(ctx context.Context, name string) (found bool, err error) {
	err = s.change(ctx, func(m map[string]Record) {
		n := len(m)
		maps.DeleteFunc(m, func(_ string, r Record) bool { return r.Name == name })
		found = len(m) < n
	})
	return found, err
}

// turn waits until no other process renews a token.
func (s Store) turn(ctx context.Context) (done func(), err error) {
	l, err := atomicfile.Acquire(ctx, s.Path+".renew.lock", time.Minute, "renewal of a token")
	if err != nil {
		return nil, err
	}
	return func() { _ = l.Release() }, nil
}
