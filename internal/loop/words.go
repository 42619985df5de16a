package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// The marks of an interrupt in a history. compat: clients and readers of
// session files match on them.
const (
	interrupted      = "[Request interrupted by user]"
	interruptedTools = "[Request interrupted by user for tool use]"
)

// What the program says to the model within a turn.
const (
	goOnCut    = "The connection broke while you were writing; what stands above arrived whole, anything after it did not. Go on from where it ends. Do not repeat it, do not apologise."
	goOnLength = "Your answer reached the limit for one response. Go on from where it ends, without repeating anything; split what is left into smaller pieces."
	goOnEmpty  = "Your last response was empty. If the work is done, say so in a sentence; if not, go on with it."
	goOnRefuse = "The last response was declined. If the request can be met in an acceptable way, do that part; if not, say briefly what you cannot do."
	sameAgain  = "This is the %s time in a row that the same calls gave the same results. Another repetition will not change them: use what you know, try something else, or say what keeps you from going on."
	limitTold  = "The model reached the limit of its output again and again; the answer is not complete."
	refuseTold = "The model declined to answer this request."
)

func reminder(text string) agent.Block {
	return &agent.Text{Text: "<system-reminder>\n" + text + "\n</system-reminder>", Note: "loop"}
}

// toolError words a failure that lies in the call itself. compat: the tag and
// the words at its head are what clients and models know.
func toolError(format string, args ...any) agent.Result {
	r := agent.Failed("<tool_use_error>" + fmt.Sprintf(format, args...) + "</tool_use_error>")
	return r
}

func noTool(name string) agent.Result {
	return toolError("Error: No such tool available: %s", name)
}

func badInput(name string, err error) agent.Result {
	return toolError("InputValidationError: %s cannot run with this input:\n%s", name, err)
}

func badJSON(u *agent.ToolUse) agent.Result {
	return toolError("InputValidationError: the input of %s is not complete, valid JSON, so the call did not run. What arrived: %s", u.Name, strings.ToValidUTF8(clip(string(u.Input), 600), "\ufffd"))
}

const repeated = "A call with this very id and input has run before and was not run again; its result stands above. If it is to run once more, ask for it in a new call."

// notRun says why a call did not start.
func notRun(cause error) string {
	switch {
	case errors.Is(cause, ErrInterrupted):
		return "The user interrupted the turn before this call started. It did not run, and nothing was changed by it. Wait for what the user says next."
	case errors.Is(cause, ErrStopped), errors.Is(cause, context.Canceled):
		return "The session was stopped before this call started. It did not run."
	}
	return "This call did not run: " + cause.Error()
}

// cutShort says that a call was ended while it ran.
func cutShort(cause error, readOnly bool) string {
	s := "The session was stopped while this call ran."
	if errors.Is(cause, ErrInterrupted) {
		s = "The user interrupted this call while it ran."
	}
	if readOnly {
		return s
	}
	return s + " What it did until then stands, and how far it came is not known: look before you repeat it."
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + " …"
}

func ordinal(n int) string {
	switch {
	case n%100/10 != 1 && n%10 == 1:
		return fmt.Sprintf("%dst", n)
	case n%100/10 != 1 && n%10 == 2:
		return fmt.Sprintf("%dnd", n)
	case n%100/10 != 1 && n%10 == 3:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

// explain words err where Loop.Explain does not.
func explain(err error) agent.Trouble {
	t := agent.Trouble{Kind: "unknown", Text: "API Error: " + err.Error()}
	var m *agent.ModelError
	if errors.As(err, &m) {
		t.Status, t.Type = m.Status, m.Type
	}
	return t
}
