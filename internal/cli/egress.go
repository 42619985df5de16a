package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/app"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
	"github.com/seed-eb844fcb/cinch/internal/net/egress/reach"
)

const egressUsage = "usage: cinch egress explain [--json] [--fetch] [--no-probe] [-p] [--settings FILE] [--permission-mode MODE] [--net only:HOSTS] HOST[:PORT]|URL|'COMMAND'"

// egress says whether a host can be reached and what stands in the way. The
// exit status is 0 if it can, 1 if not, 2 if somebody would have to be asked.
func (p *program) egress(args []string) int {
	if len(args) == 0 || args[0] != "explain" {
		return p.fail(usagef("%s", egressUsage))
	}
	o, err := p.light()
	if err != nil {
		return p.fail(err)
	}
	q, asJSON, err := parseEgress(args[1:], &o)
	if err != nil {
		return p.fail(err)
	}
	ctx, cancel := within(2 * time.Minute)
	defer cancel()
	reports, unsure, err := app.Reachable(ctx, o, q)
	if err != nil {
		return p.fail(err)
	}
	if asJSON {
		if reports == nil {
			reports = []reach.Report{}
		}
		enc := json.NewEncoder(p.stdout)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(map[string]any{"question": q.What, "reports": reports, "unsure": unsure}); err != nil {
			return p.fail(err)
		}
	} else {
		for i, r := range reports {
			if i > 0 {
				fmt.Fprintln(p.stdout)
			}
			if err := r.Write(p.stdout); err != nil {
				return p.fail(err)
			}
		}
		if unsure != "" {
			fmt.Fprintln(p.stdout, "not all hosts can be told: "+termsafe.String(unsure))
		}
	}
	if len(reports) == 0 {
		fmt.Fprintln(p.stderr, "cinch: no host can be told from this command; ask about one: cinch egress explain HOST")
		return 1
	}
	code := 0
	for _, r := range reports {
		switch {
		case r.Verdict == reach.No:
			code = 1
		case r.Verdict == reach.Ask && code == 0:
			code = 2
		}
	}
	return code
}

func parseEgress(args []string, o *app.Options) (q app.Reach, asJSON bool, err error) {
	var words []string
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		switch name {
		case "--json":
			asJSON = true
		case "--fetch":
			q.Fetch = true
		case "--no-probe":
			q.NoProbe = true
		case "-p", "--print":
			o.Print = true
		case "--settings", "--permission-mode", "--net":
			if !joined {
				if i++; i == len(args) {
					return q, false, usagef("%s needs a value\n%s", name, egressUsage)
				}
				value = args[i]
			}
			switch name {
			case "--settings":
				o.Settings = value
			case "--permission-mode":
				o.Mode = agent.Mode(value)
			default:
				if o.OnlyHosts, err = onlyHosts(value); err != nil {
					return q, false, err
				}
			}
		default:
			if strings.HasPrefix(name, "-") && len(words) == 0 {
				return q, false, usagef("unknown flag %s\n%s", name, egressUsage)
			}
			words = append(words, args[i])
		}
	}
	if q.What = strings.TrimSpace(strings.Join(words, " ")); q.What == "" {
		return q, false, usagef("%s", egressUsage)
	}
	return q, asJSON, nil
}

// onlyHosts reads the value of --net.
func onlyHosts(value string) ([]string, error) {
	hosts, ok := strings.CutPrefix(value, "only:")
	if !ok || hosts == "" {
		return nil, usagef("option '--net' takes only:HOST[,HOST], not %q", value)
	}
	return strings.Split(hosts, ","), nil
}
