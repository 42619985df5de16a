package app

import (
	"context"
	"encoding/json"

	"github.com/seed-eb844fcb/cinch/internal/ext/hook"
	"github.com/seed-eb844fcb/cinch/internal/lib/termsafe"
	"github.com/seed-eb844fcb/cinch/internal/policy"
)

// What follows shows a host the hooks and the permission rules in force.

// sourceName is what the protocol calls a layer, and how a person would.
func sourceName(layer string) (name, label string) {
	switch layer {
	case "managed":
		return "policySettings", "Managed settings"
	case "cli":
		return "cliArg", "Command line"
	case "flag":
		return "flagSettings", "Settings of the command line"
	case "local":
		return "localSettings", "Local settings"
	case "project":
		return "projectSettings", "Project settings"
	case "user":
		return "userSettings", "User settings"
	case "sdk", "session":
		return "session", "This session"
	}
	return layer, layer
}

type hookEvent struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Matcher bool   `json:"supportsMatcher"`
	Count   *int   `json:"hookCount,omitempty"`
}

type hookRow struct {
	Event      string  `json:"event"`
	Matcher    string  `json:"matcher"`
	Source     string  `json:"source"`
	Label      string  `json:"sourceLabel"`
	Type       string  `json:"type"`
	Text       string  `json:"displayText"`
	Command    string  `json:"commandText"`
	Kind       string  `json:"contentLabel"`
	If         string  `json:"condition,omitempty"`
	Timeout    float64 `json:"timeout,omitempty"` // seconds
	Status     string  `json:"statusMessage,omitempty"`
	Once       bool    `json:"runsOnce,omitempty"`
	Background bool    `json:"runsInBackground,omitempty"`
}

func (a *App) hooksListing(context.Context, json.RawMessage) (any, error) {
	c := a.cfg()
	kinds := map[string]string{hook.Command: "Command", hook.HTTP: "URL", hook.MCPTool: "Tool", hook.Prompt: "Prompt", hook.Agent: "Prompt", hook.Callback: "Callback"}
	all := a.hooks.Handlers()
	events, catalog, rows := []hookEvent{}, []hookEvent{}, []hookRow{}
	managed := 0
	for _, e := range hook.Catalog() {
		n := 0
		for _, h := range all {
			if h.Event != e.Name {
				continue
			}
			n++
			layer := h.Source
			if layer == "cli" { // the settings of --settings
				layer = "flag"
			}
			if layer == "managed" {
				managed++
			}
			r := hookRow{
				Event: h.Event, Matcher: termsafe.String(h.Matcher), Type: h.Type, Command: termsafe.String(h.Name()), Kind: kinds[h.Type],
				If: termsafe.String(h.If), Timeout: h.Timeout.Seconds(), Status: h.StatusMessage, Once: h.Once, Background: h.Async,
			}
			if h.Type == hook.Prompt || h.Type == hook.Agent {
				r.Command = termsafe.String(h.Prompt)
			}
			r.Source, r.Label = sourceName(layer)
			r.Text = or(termsafe.String(h.StatusMessage), r.Command)
			rows = append(rows, r)
		}
		catalog = append(catalog, hookEvent{Name: e.Name, Summary: e.Summary, Matcher: e.Matcher})
		if n > 0 {
			events = append(events, hookEvent{e.Name, e.Summary, e.Matcher, &n})
		}
	}
	return map[string]any{
		"events": events, "hooks": rows, "eventCatalog": catalog,
		"policy": map[string]any{
			"disabledByPolicy": false, "managedOnly": c.managedHooks, "pluginOnly": false, "allDisabled": c.noHooks, "policyHookCount": managed,
		},
	}, nil
}

type ruleRow struct {
	Behavior string `json:"behavior"`
	Source   string `json:"source"`
	Rule     string `json:"rule"`
	Edit     string `json:"editability"`
	Idle     bool   `json:"notInEffect,omitempty"`
}

type dirRow struct {
	Path   string `json:"path"`
	Source string `json:"source"`
}

func (a *App) permissionRules(context.Context, json.RawMessage) (any, error) {
	p, c := a.gate.Policy(), a.cfg()
	rules, dirs := []ruleRow{}, []dirRow{}
	for _, r := range p.Rules() {
		row := ruleRow{Behavior: r.Verdict.String(), Rule: r.Text, Edit: "readonly", Idle: c.managedOnly && r.Layer != policy.LayerManaged}
		row.Source, _ = sourceName(string(r.Layer))
		switch r.Layer {
		case policy.LayerUser, policy.LayerProject, policy.LayerLocal:
			row.Edit = "persistent"
		case policy.LayerSession:
			row.Edit = "session"
		}
		rules = append(rules, row)
	}
	for _, d := range p.Dirs()[1:] {
		dirs = append(dirs, dirRow{d, "session"})
	}
	return map[string]any{"state": map[string]any{
		"rules": rules, "workspaceDirectories": dirs, "originalCwd": a.o.Cwd, "managedOnly": c.managedOnly,
	}}, nil
}
