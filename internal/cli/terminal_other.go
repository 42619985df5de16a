//go:build !unix

package cli

import (
	"context"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/app"
	"github.com/seed-eb844fcb/cinch/internal/lib/tty"
	"github.com/seed-eb844fcb/cinch/internal/ui/tui"
)

// screen reports that there is only the plain front end here.
func (p *program) screen(*options) bool { return false }

func (p *program) talk(context.Context, *app.App, []agent.Block) (tui.Result, error) {
	return tui.Result{}, tty.ErrNone
}
