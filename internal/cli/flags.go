package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A kind says how a flag takes its value.
type kind uint8

const (
	boolean  kind = iota // --x, --x=true|false
	single               // --x V, --x=V
	optional             // --x, --x=V; a following word is V only if the flag says so
	variadic             // --x A B …, --x=A,B; takes words up to the next flag
)

// A flag is one option of the command line. Names are the reference's, so
// that its clients' argv works unchanged.
type flag struct {
	name  string
	alias string // another spelling
	short byte
	kind  kind
	arg   string // what the value is called in help
	help  string // "" hides the flag from help
	// not explains why an accepted flag has no effect here; a run that uses
	// it is refused with these words.
	not string
}

const hosted = "it belongs to a hosted service that cinch is not part of"

var flags = []flag{
	{name: "print", short: 'p', kind: boolean, help: "answer the prompt and exit"},
	{name: "output-format", kind: single, arg: "FORMAT", help: "text, json or stream-json (with -p)"},
	{name: "input-format", kind: single, arg: "FORMAT", help: "text or stream-json (with -p)"},
	{name: "verbose", kind: boolean, help: "show every message of a turn"},
	{name: "include-partial-messages", kind: boolean, help: "stream-json: add the model's deltas"},
	{name: "include-hook-events", kind: boolean, help: "stream-json: add every hook's life"},
	{name: "replay-user-messages", kind: boolean, help: "stream-json: echo user messages"},
	{name: "forward-subagent-text", kind: boolean, help: "stream-json: add what sub-agents say"},
	{name: "json-schema", kind: single, arg: "SCHEMA", help: "the answer must fit this JSON schema"},
	{name: "max-turns", kind: single, arg: "N", help: "end after N model requests"},
	{name: "max-budget-usd", kind: single, arg: "USD", help: "end once this much was spent"},
	{name: "task-budget", kind: single},
	{name: "model", kind: single, arg: "MODEL", help: "model alias (opus, sonnet, haiku, fable) or id"},
	{name: "fallback-model", kind: single, arg: "MODELS", help: "comma list to use when the model is overloaded"},
	{name: "effort", kind: single, arg: "LEVEL", help: "low, medium, high, xhigh or max"},
	{name: "thinking", kind: single},
	{name: "thinking-display", kind: single},
	{name: "max-thinking-tokens", kind: single},
	{name: "system-prompt", kind: single, arg: "TEXT", help: "replace the system prompt"},
	{name: "system-prompt-file", kind: single, arg: "FILE", help: "the same, from a file"},
	{name: "append-system-prompt", kind: single, arg: "TEXT", help: "add to the system prompt"},
	{name: "append-system-prompt-file", kind: single, arg: "FILE", help: "the same, from a file"},
	{name: "append-subagent-system-prompt", kind: single, arg: "TEXT", help: "add to every sub-agent's prompt"},
	{name: "exclude-dynamic-system-prompt-sections", kind: boolean, help: "keep cwd, date and git out of the system prompt"},
	{name: "system-prompt-snapshot", kind: single},
	{name: "allowedTools", alias: "allowed-tools", kind: variadic, arg: "RULES", help: "permission rules that allow"},
	{name: "disallowedTools", alias: "disallowed-tools", kind: variadic, arg: "RULES", help: "permission rules that deny"},
	{name: "tools", kind: variadic, arg: "NAMES", help: "which built-in tools exist; \"\" for none"},
	{name: "permission-mode", kind: single, arg: "MODE", help: "default, acceptEdits, plan, auto, dontAsk, bypassPermissions"},
	{name: "dangerously-skip-permissions", kind: boolean, help: "same as --permission-mode bypassPermissions"},
	{name: "allow-dangerously-skip-permissions", kind: boolean, help: "let bypassPermissions be chosen later"},
	{name: "permission-prompt-tool", kind: single, arg: "TOOL", help: "MCP tool that answers permission questions, or stdio"},
	{name: "permission-prompts", kind: single, arg: "WHO", help: "host or none: who answers permission questions"},
	{name: "add-dir", kind: variadic, arg: "DIRS", help: "more working directories"},
	{name: "mcp-config", kind: variadic, arg: "FILES", help: "MCP servers from files or JSON"},
	{name: "strict-mcp-config", kind: boolean, help: "only the servers of --mcp-config"},
	{name: "settings", kind: single, arg: "FILE", help: "settings from a file or JSON"},
	{name: "managed-settings", kind: single},
	{name: "setting-sources", kind: single, arg: "LIST", help: "which of user,project,local are read"},
	{name: "agents", kind: single, arg: "JSON", help: "sub-agents for this session"},
	{name: "agent", kind: single, arg: "NAME", help: "run as this agent"},
	{name: "continue", short: 'c', kind: boolean, help: "go on with the newest conversation here"},
	{name: "resume", short: 'r', kind: optional, arg: "ID", help: "go on with a conversation"},
	{name: "fork-session", kind: boolean, help: "with -c or -r: go on under a new id"},
	{name: "resume-session-at", kind: single},
	{name: "resume-drops-turn", kind: single},
	{name: "rewind-files", kind: single, arg: "UUID", help: "with -r: restore files as they were at that message"},
	{name: "session-id", kind: single, arg: "UUID", help: "use this id"},
	{name: "no-session-persistence", kind: boolean, help: "write no transcript"},
	{name: "name", short: 'n', kind: single, arg: "TEXT", help: "name of the session"},
	{name: "record", kind: single, arg: "FILE", help: "record the run, for 'cinch replay'"},
	{name: "net", kind: single, arg: "only:HOSTS", help: "refuse every other host"},
	{name: "bare", kind: boolean, help: "no hooks, skills, commands, agents, plugins, MCP or memory"},
	{name: "safe-mode", kind: boolean, help: "no customisations; permissions and models as usual"},
	{name: "restricted", kind: boolean, help: "no tools that run code unless named in --tools"},
	{name: "debug", short: 'd', kind: optional, arg: "FILTER", help: "write a debug log"},
	{name: "debug-file", kind: single, arg: "FILE", help: "write the debug log there"},
	{name: "version", short: 'v', kind: boolean, help: "print the version"},
	{name: "help", short: 'h', kind: boolean, help: "print this help"},
	{name: "betas", kind: variadic, arg: "NAMES", help: "more anthropic-beta values"},
	{name: "disable-slash-commands", kind: boolean, help: "no skills or commands"},
	{name: "plugin-dir", kind: single, arg: "DIR", help: "a plugin, or a folder of plugins, for this session; may be repeated"},
	{name: "plugin-url", kind: variadic, not: "plugins are read from directories; use --plugin-dir"},
	{name: "autocompact", kind: single, arg: "TOKENS", help: "context window for automatic compaction"},
	{name: "await-initialize", kind: boolean},
	{name: "project-config-root", kind: single, arg: "DIR", help: "where .claude is looked for"},
	{name: "prompt-suggestions", kind: boolean},
	{name: "plain", kind: boolean, help: "lines only: for screen readers and terminals that can do no more"},
	{name: "ax-screen-reader", kind: boolean},
	{name: "init", kind: boolean, help: "run Setup hooks (init) first"},
	{name: "init-only", kind: boolean, help: "run Setup and SessionStart hooks, then exit"},
	{name: "maintenance", kind: boolean, help: "run Setup hooks (maintenance) first"},
	{name: "brief", kind: boolean},
	{name: "enable-auto-mode", kind: boolean},
	{name: "ide", kind: boolean},
	{name: "file", kind: variadic, not: hosted},
	{name: "worktree", short: 'w', kind: optional, not: "make the worktree with git and start cinch there"},
	{name: "tmux", kind: optional, not: "start cinch inside tmux"},
	{name: "bg", alias: "background", kind: boolean, not: "background sessions are not there; use -p with your shell's &"},
	{name: "from-pr", kind: optional, not: hosted},
	{name: "teammate-mode", kind: single, not: hosted},
	{name: "advisor", kind: single, not: hosted},
	{name: "chrome", kind: boolean, not: hosted},
	{name: "no-chrome", kind: boolean},
	{name: "cloud", alias: "remote", kind: boolean, not: hosted},
	{name: "environment", kind: single, not: hosted},
	{name: "ref", kind: single, not: hosted},
	{name: "teleport", kind: optional, not: hosted},
	{name: "desktop", kind: boolean, not: hosted},
	{name: "remote-control", alias: "rc", kind: optional, not: hosted},
	{name: "remote-control-session-name-prefix", kind: single},
	{name: "channels", kind: variadic, not: hosted},
	{name: "dangerously-load-development-channels", kind: variadic, not: hosted},
}

// An options value is a parsed command line.
type options struct {
	set  map[string][]string // values by flag name; a boolean has "true" or "false"
	args []string            // words that belong to no flag
}

func (o *options) has(name string) bool { _, ok := o.set[name]; return ok }

func (o *options) on(name string) bool {
	v := o.set[name]
	return len(v) > 0 && v[len(v)-1] != "false"
}

// last returns the last value given for name, or "".
func (o *options) last(name string) string {
	if v := o.set[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

func (o *options) all(name string) []string { return o.set[name] }

// resuming is o for another session: what was about this one alone is left out.
func (o *options) resuming(id string) *options {
	n := &options{set: maps.Clone(o.set)}
	for _, name := range []string{"continue", "fork-session", "session-id", "name", "record", "resume-session-at", "resume-drops-turn", "rewind-files"} {
		delete(n.set, name)
	}
	n.set["resume"] = []string{id}
	return n
}

// words returns the values of a variadic tool list: split at commas and
// spaces, but not inside parentheses, which belong to a rule.
func (o *options) words(name string) []string {
	var out []string
	for _, v := range o.set[name] {
		out = append(out, splitRules(v)...)
	}
	return out
}

func splitRules(s string) []string {
	var out []string
	depth, start := 0, 0
	flush := func(end int) {
		if w := strings.TrimSpace(s[start:end]); w != "" {
			out = append(out, w)
		}
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case depth == 0 && (c == ',' || c == ' ' || c == '\n' || c == '\t'):
			flush(i)
			start = i + 1
		}
	}
	flush(len(s))
	return out
}

// A usageError is a command line that cannot be run as it stands.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

func find(name string) *flag {
	for i := range flags {
		if flags[i].name == name || flags[i].alias == name && name != "" {
			return &flags[i]
		}
	}
	return nil
}

// parse reads argv. Flags and words may be mixed; "--" ends the flags.
func parse(args []string) (*options, error) {
	o := &options{set: map[string][]string{}}
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			o.args = append(o.args, args[i+1:]...)
			break
		}
		if len(a) < 2 || a[0] != '-' {
			o.args = append(o.args, a)
			continue
		}
		var f *flag
		name, value, eq := strings.Cut(a, "=")
		if strings.HasPrefix(a, "--") {
			f = find(name[2:])
		} else {
			j := slices.IndexFunc(flags, func(f flag) bool { return f.short == a[1] })
			if j >= 0 {
				f = &flags[j]
				if len(a) > 2 && !eq { // -pc, -nNAME
					if f.kind == boolean {
						args = slices.Insert(slices.Clone(args), i+1, "-"+a[2:])
					} else {
						value, eq = a[2:], true
					}
				}
			}
		}
		if f == nil {
			return nil, usagef("unknown option '%s'", name)
		}
		switch {
		case f.kind == boolean && !eq:
			value = "true"
		case f.kind == boolean:
			if _, err := strconv.ParseBool(value); err != nil {
				return nil, usagef("option '--%s' takes true or false, not %q", f.name, value)
			}
		case f.kind == single && !eq:
			if i+1 >= len(args) {
				return nil, usagef("option '--%s <%s>' argument missing", f.name, strings.ToLower(or(f.arg, "value")))
			}
			i++
			value = args[i]
		case f.kind == optional && !eq:
			// compat: --resume takes the next word; --debug never does.
			if f.name != "debug" && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
				value = args[i]
			}
		case f.kind == variadic && !eq:
			n := 0
			for i+1 < len(args) && (!strings.HasPrefix(args[i+1], "-") || args[i+1] == "-") {
				i++
				n++
				o.set[f.name] = append(o.set[f.name], args[i])
			}
			if n == 0 {
				return nil, usagef("option '--%s <%s...>' argument missing", f.name, strings.ToLower(or(f.arg, "value")))
			}
			continue
		}
		o.set[f.name] = append(o.set[f.name], value)
	}
	for _, f := range flags {
		if f.not != "" && o.has(f.name) {
			return nil, usagef("option '--%s' is not available: %s", f.name, f.not)
		}
	}
	return o, nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
