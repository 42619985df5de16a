package window

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/window/compact"
	"github.com/seed-eb844fcb/cinch/internal/window/memory"
)

// A Report says what is in the window. Its JSON form is the SDK's answer to
// get_context_usage.
type Report struct {
	Categories    []Category     `json:"categories"`
	Total         int            `json:"totalTokens"`
	Max           int            `json:"maxTokens"`
	RawMax        int            `json:"rawMaxTokens"`
	Percentage    int            `json:"percentage"`
	Grid          [][]Square     `json:"gridRows"`
	Model         string         `json:"model"`
	MemoryFiles   []MemoryShare  `json:"memoryFiles"`
	MCPTools      []ToolShare    `json:"mcpTools"`
	SystemTools   []ToolShare    `json:"systemTools"`
	DeferredTools []ToolShare    `json:"deferredBuiltinTools"`
	Agents        []AgentShare   `json:"agents"`
	Threshold     int            `json:"autoCompactThreshold,omitempty"`
	Auto          bool           `json:"isAutoCompactEnabled"`
	Messages      MessageShares  `json:"messageBreakdown"`
	API           *APIUsage      `json:"apiUsage"`
	Next          []compact.Cut  `json:"nextCuts,omitempty"` // what would be taken out first; ours
	Cache         *Record        `json:"cache,omitempty"`    // the newest request; ours
	Warm          int            `json:"cacheWarm"`          // tokens that should be in the cache now; ours
	Sections      []SectionShare `json:"systemPromptSections,omitempty"`
}

type (
	// A Category is one row. Kind is used, free, buffer or deferred.
	Category struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		Tokens   int    `json:"tokens"`
		Color    string `json:"color"`
		Deferred bool   `json:"isDeferred,omitempty"`
		Kind     string `json:"kind"`
	}
	// A Square is one hundredth of the window.
	Square struct {
		Color      string  `json:"color"`
		Filled     bool    `json:"isFilled"`
		Category   string  `json:"categoryName"`
		Tokens     int     `json:"tokens"`
		Percentage int     `json:"percentage"`
		Fullness   float64 `json:"squareFullness"`
	}
	MemoryShare struct {
		Path   string `json:"path"`
		Type   string `json:"type"`
		Tokens int    `json:"tokens"`
	}
	ToolShare struct {
		Name   string `json:"name"`
		Server string `json:"serverName,omitempty"`
		Tokens int    `json:"tokens"`
		Loaded bool   `json:"isLoaded"`
	}
	AgentShare struct {
		Type   string `json:"agentType"`
		Source string `json:"source"`
		Tokens int    `json:"tokens"`
	}
	SectionShare struct {
		Name   string `json:"name"`
		Tokens int    `json:"tokens"`
	}
	MessageShares struct {
		Calls       int         `json:"toolCallTokens"`
		Results     int         `json:"toolResultTokens"`
		Attachments int         `json:"attachmentTokens"`
		Assistant   int         `json:"assistantMessageTokens"`
		User        int         `json:"userMessageTokens"`
		Redirected  int         `json:"redirectedContextTokens"`
		Other       int         `json:"unattributedTokens"`
		ByTool      []CallShare `json:"toolCallsByType"`
		ByKind      []NoteShare `json:"attachmentsByType"`
	}
	CallShare struct {
		Name    string `json:"name"`
		Calls   int    `json:"callTokens"`
		Results int    `json:"resultTokens"`
	}
	NoteShare struct {
		Name   string `json:"name"`
		Tokens int    `json:"tokens"`
	}
	APIUsage struct {
		In         int `json:"input_tokens"`
		Out        int `json:"output_tokens"`
		CacheWrite int `json:"cache_creation_input_tokens"`
		CacheRead  int `json:"cache_read_input_tokens"`
	}
)

// An Account is what a Report is made from. Builder and Compactor are required.
type Account struct {
	Builder   *Builder
	Compactor *compact.Compactor
	History   []agent.Message
	Memory    *memory.Set
	Agents    []agent.AgentInfo
	Model     string
	Usage     *agent.Usage // of the newest response, if there was one
	Counted   int          // what the upstream's own count of the request says, or 0
}

// Report makes the account: what the upstream counted where it has, and
// estimates between.
func (a Account) Report() Report {
	l := a.Compactor.Limits()
	r := Report{Model: a.Model, RawMax: l.Window, Max: l.Window, Auto: l.Auto, Threshold: l.Threshold,
		MemoryFiles: []MemoryShare{}, MCPTools: []ToolShare{}, SystemTools: []ToolShare{}, DeferredTools: []ToolShare{},
		Agents: []AgentShare{}, Grid: [][]Square{}}
	var scale compact.Scale
	notes := r.messages(&scale, a.History)
	tools := r.tools(a.Builder.shares())
	if a.Memory != nil {
		files, _ := a.Memory.Loaded()
		for _, f := range files {
			r.MemoryFiles = append(r.MemoryFiles, MemoryShare{f.Path, string(f.Kind), compact.TokensOf(len(f.Text))})
		}
	}
	for _, x := range a.Agents {
		r.Agents = append(r.Agents, AgentShare{x.Name, "", compact.TokensOf(len(x.Name) + len(x.Description))})
	}
	prefix := compact.TokensOf(len(a.Builder.System()))
	files := notes[NoteInstructions] + notes[NoteMemory]
	known := prefix + tools.system + tools.mcp + files + notes[NoteAgents] + notes[NoteSkills]
	r.Total = a.Counted
	if r.Total == 0 {
		r.Total = a.Compactor.Tokens(a.History)
	}
	r.Total = max(r.Total, known)
	spoken := r.Total - known
	r.Messages.Other = max(0, spoken-r.Messages.Calls-r.Messages.Results-r.Messages.Assistant-r.Messages.User-otherNotes(notes))
	buffer := 0
	if l.Auto && l.Window > 0 {
		buffer = max(0, l.Window-l.Threshold)
	}
	rows := []Category{
		{"system_prompt", "System prompt", prefix, "#7f8c8d", false, "used"},
		{"system_tools", "System tools", tools.system, "#95a5a6", false, "used"},
		{"mcp_tools", "MCP tools", tools.mcp, "#16a2b8", false, "used"},
		{"custom_agents", "Sub-agents", notes[NoteAgents], "#8e6bbf", false, "used"},
		{"memory_files", "Memory files", files, "#d98324", false, "used"},
		{"skills", "Skills", notes[NoteSkills], "#c0a020", false, "used"},
		{"messages", "Messages", spoken, "#5b7fd1", false, "used"},
		{"autocompact_buffer", "Auto-compact buffer", buffer, "#555555", false, "buffer"},
		{"free_space", "Free space", max(0, l.Window-r.Total-buffer), "#333333", false, "free"},
		{"mcp_tools_deferred", "MCP tools (deferred)", tools.heldMCP, "#16a2b8", true, "deferred"},
		{"system_tools_deferred", "System tools (deferred)", tools.held, "#95a5a6", true, "deferred"},
	}
	r.Categories = slices.DeleteFunc(rows, func(c Category) bool { return c.Tokens == 0 && c.ID != "messages" && c.ID != "free_space" })
	if l.Window > 0 {
		r.Percentage = int(math.Round(100 * float64(r.Total) / float64(l.Window)))
		r.Grid = grid(r.Categories, l.Window)
	}
	if u := a.Usage; u != nil {
		r.API = &APIUsage{u.In, u.Out, u.CacheWrite(), u.CacheRead}
	}
	r.Next = a.Compactor.Preview(a.History)
	if recs := a.Builder.Records(); len(recs) > 0 {
		r.Cache = &recs[len(recs)-1]
	}
	return r
}

// toolTokens are the sums over tools, by whose they are and whether they are sent.
type toolTokens struct{ system, mcp, held, heldMCP int }

// tools lists the tools in their rows.
func (r *Report) tools(shares []ToolShare) toolTokens {
	var n toolTokens
	for _, t := range shares {
		switch {
		case t.Server != "" && t.Loaded:
			n.mcp += t.Tokens
		case t.Server != "":
			n.heldMCP += t.Tokens
		case t.Loaded:
			n.system += t.Tokens
		default:
			n.held += t.Tokens
		}
		switch {
		case t.Server != "":
			r.MCPTools = append(r.MCPTools, t)
		case t.Loaded:
			r.SystemTools = append(r.SystemTools, t)
		default:
			r.DeferredTools = append(r.DeferredTools, t)
		}
	}
	return n
}

// messages fills the breakdown and returns the tokens of each kind of note.
func (r *Report) messages(scale *compact.Scale, h []agent.Message) map[string]int {
	notes := map[string]int{}
	calls := map[string]*CallShare{}
	names := map[agent.CallID]string{}
	share := func(name string) *CallShare {
		if calls[name] == nil {
			calls[name] = &CallShare{Name: name}
		}
		return calls[name]
	}
	m := &r.Messages
	for _, msg := range h {
		for _, b := range msg.Blocks {
			n := scale.Block(b).Tokens
			switch b := b.(type) {
			case *agent.ToolUse:
				names[b.ID] = b.Name
				share(b.Name).Calls += n
				m.Calls += n
			case *agent.ToolResult:
				name := names[b.ID]
				if name == "" {
					name = "unknown"
				}
				share(name).Results += n
				m.Results += n
			case *agent.Text:
				switch {
				case b.Note != "":
					notes[b.Note] += n
				case msg.Role == agent.Assistant:
					m.Assistant += n
				default:
					m.User += n
				}
			case *agent.Image, *agent.Document:
				notes["media"] += n
			default:
				m.Assistant += n
			}
		}
	}
	m.ByTool, m.ByKind = []CallShare{}, []NoteShare{}
	for _, c := range calls {
		m.ByTool = append(m.ByTool, *c)
	}
	slices.SortFunc(m.ByTool, func(a, b CallShare) int {
		return cmp.Or(cmp.Compare(b.Calls+b.Results, a.Calls+a.Results), cmp.Compare(a.Name, b.Name))
	})
	for k, n := range notes {
		m.ByKind = append(m.ByKind, NoteShare{k, n})
		m.Attachments += n
	}
	slices.SortFunc(m.ByKind, func(a, b NoteShare) int {
		return cmp.Or(cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.Name, b.Name))
	})
	return notes
}

// otherNotes is what notes take that have no category of their own.
func otherNotes(notes map[string]int) int {
	n := 0
	for k, v := range notes {
		switch k {
		case NoteInstructions, NoteMemory, NoteAgents, NoteSkills:
		default:
			n += v
		}
	}
	return n
}

// shares lists the tools with their size.
func (b *Builder) shares() []ToolShare {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []ToolShare
	add := func(s agent.Spec, loaded bool) {
		t := ToolShare{Name: s.Name, Loaded: loaded, Tokens: compact.TokensOf(len(s.Name) + len(s.Description) + len(s.Schema) + 40)}
		if rest, ok := strings.CutPrefix(s.Name, "mcp__"); ok {
			t.Server, _, _ = strings.Cut(rest, "__")
		}
		out = append(out, t)
	}
	for _, d := range b.tools.sent {
		add(d.spec, true)
	}
	for _, s := range b.tools.held {
		add(s, false)
	}
	slices.SortFunc(out, func(a, b ToolShare) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// grid draws the window as ten rows of ten squares: what is used, what is
// free, and the buffer at the end.
func grid(cs []Category, window int) [][]Square {
	order := slices.DeleteFunc(slices.Clone(cs), func(c Category) bool { return c.Kind == "deferred" })
	rank := map[string]int{"used": 0, "free": 1, "buffer": 2}
	slices.SortStableFunc(order, func(a, b Category) int { return cmp.Compare(rank[a.Kind], rank[b.Kind]) })
	rows := make([][]Square, 10)
	i, sum := 0, 0
	for n := range 100 {
		from, to := float64(window)*float64(n)/100, float64(window)*float64(n+1)/100
		// The category that holds the middle of the square.
		for i < len(order)-1 && float64(sum+order[i].Tokens) <= (from+to)/2 {
			sum += order[i].Tokens
			i++
		}
		c := order[i]
		full := (math.Min(to, float64(sum+c.Tokens)) - math.Max(from, float64(sum))) / (to - from)
		rows[n/10] = append(rows[n/10], Square{c.Color, c.Kind == "used", c.Name, c.Tokens,
			int(math.Round(100 * float64(c.Tokens) / float64(window))), math.Round(min(max(full, 0), 1)*100) / 100})
	}
	return rows
}
