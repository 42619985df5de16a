package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// The tools that give the model the resources of all servers.
const (
	ListResources = "ListMcpResourcesTool"
	ReadResource  = "ReadMcpResourceTool"
)

// Ours reports whether a tool of that name comes and goes with the servers.
func Ours(tool string) bool {
	return strings.HasPrefix(tool, "mcp__") || tool == ListResources || tool == ReadResource
}

// A Resource is one resource of a server, or a template for many.
type Resource struct {
	Server      string `json:"server"`
	URI         string `json:"uri,omitempty"`
	Template    string `json:"uriTemplate,omitempty"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// hasResources says whether x is connected and has resources.
func (x *Server) hasResources() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.state == Connected && x.info != nil && x.info.Capabilities != nil && x.info.Capabilities.Resources != nil
}

// Resources lists the resources of a server, or of all for "". What can be
// had is returned beside the error of what cannot.
func (s *Set) Resources(ctx context.Context, server string) ([]Resource, error) {
	if server != "" {
		if _, err := s.find(server); err != nil {
			return nil, err
		}
	}
	var out []Resource
	var errs []error
	for _, x := range s.list() {
		if server != "" && x.Name != server || !x.hasResources() {
			continue
		}
		rs, err := x.resources(ctx)
		out = append(out, rs...)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", x.Name, err))
		}
	}
	return out, errors.Join(errs...)
}

// resources lists those of x, templates last.
func (x *Server) resources(ctx context.Context) ([]Resource, error) {
	limit := x.set.o.ConnectTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not list its resources within %s", limit))
	defer cancel()
	cs, err := x.live(ctx)
	if err != nil {
		return nil, err
	}
	var out []Resource
	err = pages(func(cursor string) (string, error) {
		r, err := cs.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
		if err != nil {
			return "", err
		}
		for _, v := range r.Resources {
			out = append(out, Resource{Server: x.Name, URI: v.URI, Name: v.Name, Description: v.Description, MIMEType: v.MIMEType})
		}
		return r.NextCursor, nil
	})
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return out, err
	}
	_ = pages(func(cursor string) (string, error) { // templates are an extra
		r, err := cs.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{Cursor: cursor})
		if err != nil {
			return "", err
		}
		for _, v := range r.ResourceTemplates {
			out = append(out, Resource{Server: x.Name, Template: v.URITemplate, Name: v.Name, Description: v.Description, MIMEType: v.MIMEType})
		}
		return r.NextCursor, nil
	})
	return out, nil
}

// maxPages bounds a listing.
const maxPages = 200

// pages calls f with each cursor until there is no next one.
func pages(f func(cursor string) (next string, err error)) error {
	seen := map[string]bool{}
	for cursor := ""; ; {
		next, err := f(cursor)
		if err != nil || next == "" {
			return err
		}
		if seen[next] || len(seen) == maxPages {
			return fmt.Errorf("the page %q comes again and again", next)
		}
		seen[next] = true
		cursor = next
	}
}

// Read reads a resource.
func (s *Set) Read(ctx context.Context, server, uri string) (*sdk.ReadResourceResult, error) {
	x, err := s.find(server)
	if err != nil {
		return nil, err
	}
	limit := s.o.Idle
	if limit == 0 {
		limit = 5 * time.Minute
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the MCP server %s did not answer within %s", server, limit))
	defer cancel()
	cs, err := x.live(ctx)
	if err != nil {
		return nil, err
	}
	r, err := cs.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return r, err
}

// Attach reads the resource that a prompt mentions as server:uri. found is
// false if there is no such server, or none with resources.
func (s *Set) Attach(ctx context.Context, mention string) (bs []agent.Block, server, uri string, found bool, err error) {
	for _, x := range s.list() { // of two names the longer one is meant
		rest, ok := strings.CutPrefix(mention, x.Name+":")
		if ok && rest != "" && len(x.Name) > len(server) && x.hasResources() {
			server, uri = x.Name, rest
		}
	}
	if server == "" {
		return nil, "", "", false, nil
	}
	r, err := s.Read(ctx, server, uri)
	if err != nil {
		return nil, server, uri, true, err
	}
	return s.contents(r), server, uri, true, nil
}

// contents are the blocks of a resource, at most as many as fit.
func (s *Set) contents(r *sdk.ReadResourceResult) []agent.Block {
	var bs []agent.Block
	for _, c := range r.Contents {
		bs = append(bs, embedded(c))
	}
	return s.fit(bs, s.o.MaxTokens*4)
}

// resourceTools are the two tools, if a server has resources.
func (s *Set) resourceTools() []agent.Tool {
	if !slices.ContainsFunc(s.list(), (*Server).hasResources) {
		return nil
	}
	return []agent.Tool{resourceTool{s, false}, resourceTool{s, true}}
}

// A resourceTool lists resources, or reads one.
type resourceTool struct {
	s    *Set
	read bool
}

type resourceInput struct {
	Server string `json:"server"`
	URI    string `json:"uri"`
}

func (t resourceTool) Spec() agent.Spec {
	if t.read {
		return agent.Spec{Name: ReadResource, Deferred: t.s.o.Deferred,
			Description: "Reads a resource of an MCP server: a document, a table, a picture, whatever the server offers under a URI.",
			Schema: json.RawMessage(`{"type":"object","properties":{` +
				`"server":{"type":"string","description":"The name of the MCP server"},` +
				`"uri":{"type":"string","description":"The URI of the resource, as the list gives it"}},` +
				`"required":["server","uri"],"additionalProperties":false}`)}
	}
	return agent.Spec{Name: ListResources, Deferred: t.s.o.Deferred,
		Description: "Lists the resources that the MCP servers offer, each with its server and URI. An entry with uriTemplate stands for many: fill it in to get a URI.",
		Schema: json.RawMessage(`{"type":"object","properties":{` +
			`"server":{"type":"string","description":"List only those of this server"}},"additionalProperties":false}`)}
}

func (t resourceTool) parse(raw json.RawMessage) (in resourceInput, err error) {
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &in); err != nil {
			return in, fmt.Errorf("reading the input: %w", err)
		}
	}
	if t.read && (in.Server == "" || in.URI == "") {
		return in, errors.New("a server and a URI are needed")
	}
	return in, nil
}

func (t resourceTool) Inspect(raw json.RawMessage) (agent.Effects, error) {
	_, err := t.parse(raw)
	return agent.Effects{Concurrent: true, ReadOnly: true, Idempotent: true}, err
}

func (t resourceTool) Run(ctx context.Context, c agent.Call) (agent.Result, error) {
	in, err := t.parse(c.Input)
	if err != nil {
		return agent.Result{}, err
	}
	if t.read {
		r, err := t.s.Read(ctx, in.Server, in.URI)
		if err != nil {
			return t.failed(ctx, "Reading "+in.URI, err)
		}
		bs := t.s.contents(r)
		if len(bs) == 0 {
			bs = []agent.Block{&agent.Text{Text: "(the resource is empty)"}}
		}
		return agent.Result{Blocks: bs, Array: true}, nil
	}
	rs, err := t.s.Resources(ctx, in.Server)
	if err != nil && len(rs) == 0 {
		return t.failed(ctx, "Listing resources", err)
	}
	text := "No MCP server has resources now."
	if len(rs) > 0 {
		raw, err := json.MarshalIndent(rs, "", " ")
		if err != nil {
			return agent.Result{}, err
		}
		text = string(raw)
	}
	bs := t.s.fit([]agent.Block{&agent.Text{Text: text}}, t.s.o.MaxTokens*4)
	if err != nil {
		bs = append(bs, &agent.Text{Text: "Not all could be listed: " + err.Error()})
	}
	return agent.Result{Blocks: bs, Array: true}, nil
}

// failed tells the model what went wrong, and which servers there are.
func (t resourceTool) failed(ctx context.Context, what string, err error) (agent.Result, error) {
	if ctx.Err() != nil {
		return agent.Result{}, context.Cause(ctx)
	}
	text := what + ": " + err.Error()
	if e, ok := rpcError(err); ok {
		text = fmt.Sprintf("%s: MCP error %d: %s", what, e.Code, e.Message)
	}
	if errors.Is(err, ErrUnknown) {
		var names []string
		for _, x := range t.s.list() {
			if x.hasResources() {
				names = append(names, x.Name)
			}
		}
		text += "\nServers with resources: " + strings.Join(names, ", ")
	}
	return agent.Failed(text), nil
}
