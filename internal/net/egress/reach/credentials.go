package reach

import (
	"strconv"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/net/egress"
)

// A Credential is one that a command would use, as far as its words and the
// habits of its program tell.
type Credential struct {
	Name string // of the variable, or the path
	File bool
	// Hidden credentials are kept from the command; Masked ones are seen as a
	// stand-in. Else the command sees the real one.
	Hidden, Masked bool
	// For says that a masked one may go to the host.
	For bool
	// By names the setting that hides it, for people.
	By string
}

// Visibility is the layer of credentials: whether what the command would use
// gets to the host. Opened says that TLS is opened for masked ones, plaintext that
// they may go out without.
func Visibility(list []Credential, t egress.Target, scheme string, opened, plaintext bool) Layer {
	l := Layer{Name: Credentials, Verdict: None, Why: "no credential of the command's is spoken of in settings"}
	var whys, changes []string
	for _, c := range list {
		v, why, change := c.verdict(t, scheme, opened, plaintext)
		if l.Verdict != No {
			l.Verdict = v
		}
		whys = append(whys, c.Name+" "+why)
		if change != "" {
			changes = append(changes, change)
		}
	}
	if len(whys) > 0 {
		l.Why, l.Change = strings.Join(whys, "; "), strings.Join(changes, "; ")
	}
	return l
}

func (c Credential) verdict(t egress.Target, scheme string, opened, plaintext bool) (v Verdict, why, change string) {
	web := scheme == "http" || scheme == "https"
	switch {
	case c.Hidden:
		change = "take it out of " + c.By
		if !c.File {
			change = "take it out of " + c.By + ", or mask it there (mode mask) for " + t.Rule()
		}
		return No, "is kept from commands (" + c.By + ")", change
	case !c.Masked:
		return Yes, "is seen as it is", ""
	case !c.For:
		return No, "is masked, and not for this host", "add " + strconv.Quote(t.Rule()) + " to its injectHosts in sandbox.credentials"
	case !web:
		return No, "is masked, and the value is put in on HTTP only", "let commands see it, if it must go out by " + scheme
	case scheme == "http" && !plaintext:
		return No, "is masked, and the value does not go out without TLS", "use https"
	case scheme == "https" && !opened:
		return No, "is masked, and no TLS is opened to put the value in", "set sandbox.network.tlsTerminate to {}"
	}
	return Yes, "is masked, and the value is put in on the way", ""
}
