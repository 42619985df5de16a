package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/net/ledger"
	"github.com/seed-eb844fcb/cinch/internal/transcript"
)

const netUsage = "usage: cinch net ledger [--all] [--json] [last|SESSION]"

// unseen is what no ledger can hold.
const unseen = "Not seen: what commands outside of the sandbox, MCP servers on standard input, hooks and helpers contact by themselves."

// net prints who was contacted in a session.
func (p *program) net(args []string) int {
	if len(args) == 0 || args[0] != "ledger" {
		return p.fail(usagef("%s", netUsage))
	}
	all, asJSON, key := false, false, ""
	for _, a := range args[1:] {
		switch {
		case a == "--all":
			all = true
		case a == "--json":
			asJSON = true
		case key == "" && !strings.HasPrefix(a, "-"):
			key = a
		default:
			return p.fail(usagef("%s", netUsage))
		}
	}
	s, err := p.session(key)
	if err != nil {
		return p.fail(err)
	}
	list, skipped, err := ledger.Read(ledger.Name(transcript.SideDir(s.Path)))
	if err != nil {
		return p.fail(fmt.Errorf("reading the ledger: %w", err))
	}
	if skipped > 0 {
		fmt.Fprintf(p.stderr, "cinch: %d lines of the ledger could not be read\n", skipped)
	}
	if asJSON {
		if list == nil {
			list = []ledger.Contact{}
		}
		enc := json.NewEncoder(p.stdout)
		enc.SetEscapeHTML(false)
		err := enc.Encode(map[string]any{"session": s.ID, "contacts": list, "totals": ledger.Totals(list), "unseen": unseen})
		if err != nil {
			return p.fail(err)
		}
		return 0
	}
	if len(list) == 0 {
		return p.fail(errors.New("that session has contacted nobody"))
	}
	if all {
		err = ledger.WriteContacts(p.stdout, list)
	} else {
		err = ledger.WriteTotals(p.stdout, ledger.Totals(list))
	}
	if err != nil {
		return p.fail(err)
	}
	fmt.Fprintln(p.stdout, unseen)
	return 0
}
