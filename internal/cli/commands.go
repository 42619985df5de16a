package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/app"
	"github.com/seed-eb844fcb/cinch/internal/demo"
	"github.com/seed-eb844fcb/cinch/internal/net/modelserver"
	"github.com/seed-eb844fcb/cinch/internal/ui/line"
)

// commands are the subcommands, in the order of help.
func commands() []command {
	return []command{
		{"demo", "[--keep DIR]", "run the real loop on a sample project with the offline model\n\nA fresh copy of a small Go project whose tests fail is repaired: the loop, the\ntools, the permissions and the stream are the real ones, only the model is built\nin. --keep leaves the project in DIR.", (*program).demo},
		{"sessions", "[--all]", "list the conversations of this directory\n\n--all lists those of every directory. 'cinch -r ID' goes on with one.", (*program).sessions},
		{"trace", "[--all] [last|SESSION]", "print the last turn as a timeline\n\nConnect, TLS, first byte, blocks, each tool's wait and run, retries, tokens and\ncache share, and how much of the tools' time the model's writing hid. --all prints\nevery turn of the session.", (*program).trace},
		{"cache", "[last|SESSION]", "tell what each request read from the prompt cache, and what broke it", (*program).cache},
		{"replay", "FILE", "run a recorded session once more, offline\n\nMake the recording with --record FILE. The model's answers and the tools' results\ncome from it; nothing is asked, run or changed.", (*program).replayRun},
		{"context", "[SESSION] [--request N|--svg FILE] …", "print what fills the context window, a request, or a picture\n\n  --requests     list what was sent to the model\n  --request N    the bytes of request N (or last), exactly as they were sent\n  --svg FILE     a picture of how the window grew; - is standard output\n  --html FILE    a page with it, and with each request and break of the cache", (*program).context},
		{"config", "[why KEY]", "print settings and where each comes from", (*program).config},
		{"policy", "explain|test|diff …", "explain and test permission rules\n\n  explain CALL   the verdict on a command (or @Tool and its path, URL or name)\n  test FILE      expectations of a team, for CI: exit 1 if one is not met\n  diff A B       what two settings files decide differently", (*program).policy},
		{"hooks", "test EVENT [--input FILE]", "run the hooks of an event and show what they say", (*program).hooks},
		{"mcp", "add|add-json|list|get|remove …", "configure and check MCP servers", (*program).mcp},
		{"rewind", "[--to CHECKPOINT] …", "list checkpoints, or take files or the conversation back to one\n\n  --session ID    the session; the last one that made checkpoints else\n  --to ID         put files back as they were then; what commands changed, too;\n                  an id or the number in the list\n  --conversation  leave the files; make a session that ends before that prompt\n  --both          files and conversation\n  --dry-run       only say what would be done\n  --no-shell      leave what commands changed\n  --force         overwrite what somebody else has changed since", (*program).rewind},
		{"sandbox", "run|check …", "run a command in the sandbox\n\n  run [--allow-domain D] [--deny-domain D] [--write DIR] [--deny-read PATH] [--mask NAME@HOST,…] [--open-network] -- COMMAND …\n         the command may write the current directory, and reach the domains allowed;\n         of a masked variable it sees a stand-in, which becomes the value on the way to HOST\n  check  what works here and, if something does not, how to mend it", (*program).sandbox},
		{"egress", "explain HOST|URL|'COMMAND'", "tell whether a host can be reached, which layer says no, and the smallest change\n\n  --fetch      for WebFetch in place of commands\n  --no-probe   connect to nobody\n  -p           as in a run in which nobody can be asked\n  --settings FILE, --permission-mode MODE, --net only:HOSTS   as for a session\n  --json       for programs\n\nExits with 0 if it can be reached, 1 if not, 2 if somebody would be asked.", (*program).egress},
		{"net", "ledger [--all] [--json] [last|SESSION]", "tell which hosts a session has contacted, why, and how much was sent\n\n  --all   every contact, with the call or request it was made for, in place of totals\n  --json  all of it for programs", (*program).net},
		{"version", "", "print the version", nil},
	}
}

func first(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return ""
}

func prompt(text string) []agent.Block { return []agent.Block{&agent.Text{Text: text}} }

// demo repairs the sample project.
func (p *program) demo(args []string) int {
	keep := ""
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "--keep" && i+1 < len(args):
			i++
			keep = args[i]
		case strings.HasPrefix(args[i], "--keep="):
			keep = strings.TrimPrefix(args[i], "--keep=")
		default:
			return p.fail(usagef("usage: cinch demo [--keep DIR]"))
		}
	}
	dir := keep
	if dir == "" {
		tmp, err := os.MkdirTemp("", "cinch-demo-")
		if err != nil {
			return p.fail(err)
		}
		defer os.RemoveAll(tmp)
		dir = tmp
	}
	if err := demo.Copy(dir); err != nil {
		return p.fail(fmt.Errorf("copying the sample project: %w", err))
	}
	home, err := os.MkdirTemp("", "cinch-demo-home-")
	if err != nil {
		return p.fail(err)
	}
	defer os.RemoveAll(home)
	ask := isTerminal(p.stdin) && isTerminal(p.stdout)
	var pace time.Duration
	if isTerminal(p.stdout) {
		pace = 15 * time.Millisecond // as fast as one can read
	}
	srv := modelserver.New(modelserver.Options{Brain: demo.Brain(pace)})
	url, err := srv.Listen()
	if err != nil {
		return p.fail(fmt.Errorf("starting the offline model: %w", err))
	}
	defer srv.Close()
	environ := append(append([]string(nil), p.environ...), demo.Environ()...)
	ao := app.Options{
		Environ: append(environ, "CLAUDE_CONFIG_DIR="+home), Cwd: dir, Version: Version,
		Started: p.started, Stderr: p.stderr, BaseURL: url, APIKey: "offline",
		SourcesSet: true,
	}
	if !ask {
		ao.Allow = demo.Allow()
	}
	fmt.Fprintf(p.stdout, "The project is in %s; its tests fail. The model is the offline one.\n> %s\n", dir, demo.Prompt)
	screen := p.screen(&options{})
	ao.Dialogs = screen
	code := p.run(ao, func(ctx context.Context, a *app.App) int {
		if screen {
			p.once = true
			r, err := p.talk(ctx, a, prompt(demo.Prompt))
			if err != nil {
				return p.fail(err)
			}
			return r.Code
		}
		lo := line.Options{Out: p.stdout, Prompt: []agent.Block{&agent.Text{Text: demo.Prompt}}, Once: true, Color: p.color()}
		if ask {
			lo.In = p.stdin
		}
		return line.Run(ctx, a.Session, lo)
	})
	if v := srv.Violations(); len(v) > 0 {
		return p.fail(errors.New("the offline model refused a request: " + v[0]))
	}
	return code
}
