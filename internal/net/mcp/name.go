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

// ToolName is the name under which the model knows a server's tool. Names that
// are too long, or that the mapping would make equal to another's, get a part
// of the original's hash, so that different tools have different names and a
// tool has the same name in every session.
func ToolName(server, tool string, taken func(string) bool) string {
	name := "mcp__" + clean(server) + "__" + clean(tool)
	if len(name) <= maxName && !taken(name) {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	tail := "_" + hex.EncodeToString(sum[:4])
	if len(name) > maxName-len(tail) {
		name = name[:maxName-len(tail)]
	}
	return name + tail
}
