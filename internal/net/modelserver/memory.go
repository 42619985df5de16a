package modelserver

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"sync"
)

// A Memory knows what the model sent, so that what comes back can be checked.
// Signatures made by sign prove themselves, which lets a session that began
// with one server go on with another. It is safe for concurrent use; a nil
// Memory knows nothing but such proofs.
type Memory struct {
	mu    sync.Mutex
	texts map[string]string   // signature: the text it signs
	data  map[string]bool     // redacted thinking
	ahead map[string][]string // tool_use id: the thinking in front of it
}

const redactedPrefix = "redacted:"

// sign returns the signature of a thinking text.
func sign(text string) string { return "sig_" + digest(text) }

// redact returns redacted thinking that proves itself.
func redact(text string) string {
	return redactedPrefix + digest(text) + ":" + digest(redactedPrefix+digest(text))
}

func digest(s string) string {
	h := sha256.Sum256([]byte("modelserver\n" + s))
	return base64.RawURLEncoding.EncodeToString(h[:])
}

// sent notes the blocks of one response: its thinking, and the calls behind it.
func (m *Memory) sent(blocks []sentBlock) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.texts == nil {
		m.texts, m.data, m.ahead = map[string]string{}, map[string]bool{}, map[string][]string{}
	}
	var before []string
	for _, b := range blocks {
		switch {
		case b.signature != "":
			m.texts[b.signature] = b.text
			before = append(before, b.signature)
		case b.data != "":
			m.data[b.data] = true
			before = append(before, b.data)
		case b.tool != "" && len(before) > 0:
			m.ahead[b.tool] = before
		}
	}
}

// A sentBlock is what Memory keeps of a block: thinking, redacted thinking, or a call.
type sentBlock struct{ signature, text, data, tool string }

func (m *Memory) thought(text, signature string) bool {
	if signature == sign(text) {
		return true
	}
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	was, ok := m.texts[signature]
	return ok && was == text
}

func (m *Memory) redacted(data string) bool {
	if rest, ok := strings.CutPrefix(data, redactedPrefix); ok {
		if d, proof, ok := strings.Cut(rest, ":"); ok && proof == digest(redactedPrefix+d) {
			return true
		}
	}
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data[data]
}

func (m *Memory) before(tool string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ahead[tool]
}
