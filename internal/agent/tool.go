package agent

import (
	"context"
	"encoding/json"
)

// A Tool is something the model can ask this program to do.
type Tool interface {
	// Spec describes the tool to the model. It is constant for a session:
	// it is part of the cached prefix.
	Spec() Spec
	// Inspect checks input and says what running it would touch. It has no
	// side effects and may be called concurrently. Its error goes back to the model.
	Inspect(input json.RawMessage) (Effects, error)
	// Run does the work. Its error goes back to the model as a failed result.
	// It returns soon after ctx ends, with no child process left.
	Run(ctx context.Context, c Call) (Result, error)
}

// A Spec is a tool definition as the model receives it.
type Spec struct {
	Name, Description string
	Schema            json.RawMessage // a JSON Schema object; required
	Deferred          bool            // only the name is sent until the model looks it up
	// Strict tools have their input checked against Schema before Inspect.
	// The zero value checks; Loose leaves all checking to Inspect.
	Loose bool
}

// Effects says what one call would do. The zero value is the strictest
// claim: it runs alone, it may write, it must be asked about.
type Effects struct {
	Concurrent  bool // may run beside other concurrent calls
	ReadOnly    bool // changes nothing: needs no intent on disk, may be repeated
	Idempotent  bool // may be repeated after a lost answer
	Destructive bool
	// Interactive calls are never approved by a rule or a mode: a person answers.
	Interactive bool
	// Reason says why a person must answer, if that is not the tool's nature;
	// Warn is what they should see with it, line by line.
	Reason   string
	Warn     []string
	Subjects []Subject // what permission rules match against
	// Domain names the failure domain: when a call fails with Fatal, the
	// calls after it in the same domain do not run. "" is a domain of its own.
	Domain string
}

// A SubjectKind says what a Subject names.
type SubjectKind string

const (
	SubjectRead    SubjectKind = "read"    // an absolute path that is read
	SubjectWrite   SubjectKind = "write"   // an absolute path that is written
	SubjectCommand SubjectKind = "command" // a shell command line
	SubjectHost    SubjectKind = "host"    // a host name
	SubjectURL     SubjectKind = "url"
	SubjectName    SubjectKind = "name" // the specifier of Agent(name), Skill(name)
)

// A Subject is one thing a permission rule can name.
type Subject struct {
	Kind  SubjectKind
	Value string
}

// A Call is one validated request to run a tool.
type Call struct {
	ID       CallID
	Name     string
	Input    json.RawMessage
	Effects  Effects
	Agent    string         // id of the sub-agent that calls, or ""
	Progress func(Progress) // never nil when a tool runs
	// UserModified says that a person or a host changed Input with the approval.
	UserModified bool
}

type callKey struct{}

// WithCall returns a context for what is done on behalf of a call.
func WithCall(ctx context.Context, id CallID) context.Context {
	return context.WithValue(ctx, callKey{}, id)
}

// CallOf is the innermost call that ctx is on behalf of, "" if it is none. It
// is for records of what happened, never for decisions.
func CallOf(ctx context.Context) CallID {
	id, _ := ctx.Value(callKey{}).(CallID)
	return id
}

// A Progress is news of a running call, for front ends only.
type Progress struct {
	Text  string // the newest line or state
	Bytes int64  // output so far
}

// A Result is what a call produced.
type Result struct {
	Blocks  []Block
	Array   bool // see ToolResult.Array
	IsError bool
	// Unknown: the side effect may or may not have happened; do not repeat it blindly.
	Unknown bool
	// Fatal: later calls of the same failure domain must not run.
	Fatal bool
	// Detail is for front ends and hooks: it is encoded as tool_use_result
	// and never sent to the model. Nil for none.
	Detail any
	// After are blocks that stand behind the results in the same user
	// message: notes about what the call brought to light.
	After []Block
	// Loaded names deferred tools whose definitions join the request from here on.
	Loaded []string
	// End asks the loop to end the turn after this step; the value is the reason.
	End string
	// Structured is the answer of a StructuredOutput call.
	Structured json.RawMessage
}

// Textual returns a result that says s.
func Textual(s string) Result { return Result{Blocks: []Block{&Text{Text: s}}} }

// Failed returns a failed result that says s.
func Failed(s string) Result { return Result{Blocks: []Block{&Text{Text: s}}, IsError: true} }
