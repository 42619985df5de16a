//go:build !linux && !darwin

package sandbox

import (
	"errors"

	"github.com/seed-eb844fcb/cinch/internal/lib/proc"
)

func (b *Box) confine(_ *Run, s proc.Spec, _ layout) (proc.Spec, func(), error) {
	return s, nil, errors.New("commands cannot be confined on this system")
}
