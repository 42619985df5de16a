package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName is what providers take as the length of a tool's name.
const maxName = 64

// clean maps s to the characters that providers take in names.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

// plainName joins the two names as they are, but for their characters.
func plainName(server, tool string) string { return "mcp__" + clean(server) + "__" + clean(tool) }

// ToolName is the name under which the model knows a server's tool. Names that
// are too long, or that are another tool's already, get a part of the
// original's hash, so that different tools have different names and a tool has
// the same name in every session.
func ToolName(server, tool string, taken func(string) bool) string {
	name := plainName(server, tool)
	if len(name) <= maxName && !taken(name) {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	for n := 4; ; n *= 2 {
		tail := "_" + hex.EncodeToString(sum[:min(n, 16)])
		short := name
		if len(short) > maxName-len(tail) {
			short = short[:maxName-len(tail)]
		}
		if short += tail; n >= 16 || !taken(short) {
			return short
		}
	}
}
