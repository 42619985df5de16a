// Package transcript keeps sessions on disk in the JSONL format of Claude
// Code, so that third-party readers of such files read ours and we read
// theirs. It owns the names of files and directories, the mapping from events
// to lines, the boundary record beside the transcript, and the way back from
// lines to a history that the Messages API accepts.
//
// Files are only ever appended to. What cannot be read is passed over and
// counted; what is missing is put right in memory. It knows no session, no
// front end and no network, and it runs no program.
//
// A session is
//
//	<projects>/<slug>/<session>.jsonl                      the transcript
//	<projects>/<slug>/<session>.trace.jsonl                the boundary record, ours
//	<projects>/<slug>/<session>/requests.jsonl             what was sent to the model, ours
//	<projects>/<slug>/<session>/subagents/agent-<id>.jsonl
//	<projects>/<slug>/<session>/subagents/agent-<id>.meta.json
package transcript

import (
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/seed-eb844fcb/cinch/internal/transcript/history"
)

// A Store is the place of all sessions of one configuration root.
type Store struct {
	// Projects is <config root>/projects.
	Projects string
	// Private is <config root>/cinch, for locks.
	Private string
	// Name, if set, is the one project directory (CLAUDE_CODE_PROJECT_DIR_NAME).
	Name string
}

// NewStore returns the store of a configuration root.
func NewStore(root string) Store {
	return Store{Projects: filepath.Join(root, "projects"), Private: filepath.Join(root, "cinch")}
}

// Dir returns the directory of the sessions of cwd. Other working directories
// may share it: List and Find match on the recorded one.
func (s Store) Dir(cwd string) string {
	if s.Name != "" {
		return filepath.Join(s.Projects, s.Name)
	}
	return filepath.Join(s.Projects, Slug(cwd))
}

// Path returns the name of the transcript of session id in cwd.
func (s Store) Path(cwd, id string) string { return filepath.Join(s.Dir(cwd), id+ext) }

const (
	ext      = ".jsonl"
	traceExt = ".trace.jsonl"
)

// TracePath returns the name of the boundary record of the transcript path.
func TracePath(path string) string { return strings.TrimSuffix(path, ext) + traceExt }

// SideDir returns the directory of what belongs to the transcript path:
// sub-agents, large tool results.
func SideDir(path string) string { return strings.TrimSuffix(path, ext) }

// AgentPath returns the name of the transcript of sub-agent id.
func AgentPath(path, id string) string {
	return filepath.Join(SideDir(path), "subagents", "agent-"+history.Safe(id)+ext)
}

func isAlnum(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

const longSlug = 200

// Slug returns the directory name for a working directory: every UTF-16 unit
// that is no letter or digit of ASCII becomes a dash. A name of more than 200
// is cut and gets a hash of the whole path.
//
// compat: the hash is the one that the Agent SDK's listSessions looks for
// (observed through the names it opens): h = 31h + unit over 32 bits, its
// absolute value in base 36.
func Slug(cwd string) string {
	units := utf16.Encode([]rune(cwd))
	var b strings.Builder
	var h int32
	for _, u := range units {
		if isAlnum(rune(u)) {
			b.WriteByte(byte(u))
		} else {
			b.WriteByte('-')
		}
		h = 31*h + int32(u)
	}
	if b.Len() <= longSlug {
		return b.String()
	}
	abs := int64(h)
	if abs < 0 {
		abs = -abs
	}
	return b.String()[:longSlug] + "-" + strconv.FormatInt(abs, 36)
}
