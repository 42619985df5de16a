// Command mcpfixture serves what the server scenarios of the MCP conformance
// suite ask for by name, over the very code that cinch mcp serve uses. It is
// for tests only.
//
//lint:file-ignore SA1019 the suite tests sampling and logging, which are deprecated
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/net/mcp/serve"
)

const (
	pixel   = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	silence = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="
	nothing = `{"type":"object","properties":{}}`
)

func main() {
	addr := ""
	if len(os.Args) > 1 {
		addr = os.Args[1]
	}
	l, err := serve.Listen(addr)
	if err == nil {
		fmt.Printf("http://%s/mcp\n", l.Addr())
		err = serve.HTTP(context.Background(), l, serve.Handler(server(), ""))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcpfixture:", err)
		os.Exit(1)
	}
}

func server() *sdk.Server {
	empty := func(context.Context, *sdk.SubscribeRequest) error { return nil }
	s := sdk.NewServer(&sdk.Implementation{Name: serve.Name, Title: serve.Name, Version: "test"}, &sdk.ServerOptions{
		SubscribeHandler:   empty,
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{"paris", "park"}}}, nil
		},
	})
	serve.Add(s, served())
	tools(s)
	resources(s)
	prompts(s)
	return s
}

func spec(name, description, schema string) agent.Spec {
	return agent.Spec{Name: name, Description: description, Schema: json.RawMessage(schema)}
}

// served are the tools that go the way of ours.
func served() serve.Options {
	o := serve.Options{Call: func(_ context.Context, name string, _ json.RawMessage, _ func(agent.Progress)) agent.Result {
		switch name {
		case "test_image_content":
			return agent.Result{Blocks: []agent.Block{&agent.Image{MediaType: "image/png", Data: pixel}}}
		case "test_error_handling":
			return agent.Failed("This tool intentionally returns an error for testing")
		}
		return agent.Textual("This is a simple text response for testing.")
	}}
	for _, name := range []string{"test_simple_text", "test_image_content", "test_error_handling"} {
		o.Tools = append(o.Tools, serve.Tool{Spec: spec(name, "Returns what it is called after.", nothing), ReadOnly: true})
	}
	o.Tools = append(o.Tools, serve.Tool{Spec: spec("json_schema_2020_12_tool", "Has a schema of the newest kind.",
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",`+
			`"$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},`+
			`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},"additionalProperties":false}`)})
	return o
}

func bytesOf(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic(err) // a constant of this file
	}
	return b
}

func text(format string, args ...any) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

// tools are those that send what ours never do: sound, resources, questions,
// notes of the log.
func tools(s *sdk.Server) {
	add := func(name, schema string, f func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
		s.AddTool(&sdk.Tool{Name: name, Description: "Does what it is called after.", InputSchema: json.RawMessage(schema)}, f)
	}
	fixed := func(name string, content ...sdk.Content) {
		add(name, nothing, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: content}, nil
		})
	}
	fixed("test_audio_content", &sdk.AudioContent{MIMEType: "audio/wav", Data: bytesOf(silence)})
	fixed("test_embedded_resource", &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{
		URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource content."}})
	fixed("test_multiple_content_types", &sdk.TextContent{Text: "Multiple content types test:"},
		&sdk.ImageContent{MIMEType: "image/png", Data: bytesOf(pixel)},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "test://mixed-content-resource", MIMEType: "application/json", Text: `{"test":"data","value":123}`}})
	add("test_tool_with_logging", nothing, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for _, line := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			if err := r.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: line}); err != nil {
				return nil, err
			}
			pause(ctx)
		}
		return text("done"), nil
	})
	add("test_tool_with_progress", nothing, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for _, n := range []float64{0, 50, 100} {
			if token := r.Params.GetProgressToken(); token != nil {
				if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: n, Total: 100}); err != nil {
					return nil, err
				}
			}
			pause(ctx)
		}
		return text("done"), nil
	})
	add("test_sampling", `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`, sample)
	add("test_elicitation", `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`,
		func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return elicit(ctx, r, "User response: action=%s, content=%s", argument(r, "message"),
				`{"type":"object","properties":{"username":{"type":"string","description":"User's response"},"email":{"type":"string","description":"User's email address"}},"required":["username","email"]}`)
		})
	add("test_elicitation_sep1034_defaults", nothing, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return elicit(ctx, r, "Elicitation completed: action=%s, content=%s", "defaults",
			`{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},`+
				`"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`)
	})
	add("test_elicitation_sep1330_enums", nothing, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return elicit(ctx, r, "Elicitation completed: action=%s, content=%s", "enums",
			`{"type":"object","properties":{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},`+
				`"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},`+
				`"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},`+
				`"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},`+
				`"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`)
	})
	add("test_reconnection", nothing, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if r.Extra != nil && r.Extra.CloseSSEStream != nil {
			r.Extra.CloseSSEStream(sdk.CloseSSEStreamArgs{RetryAfter: 20 * time.Millisecond})
		}
		pause(ctx)
		return text("here again"), nil
	})
}

// pause is the time that the suite wants between two messages.
func pause(ctx context.Context) {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
	}
}

func argument(r *sdk.CallToolRequest, name string) string {
	var m map[string]any
	_ = json.Unmarshal(r.Params.Arguments, &m) // a missing one is ""
	s, _ := m[name].(string)
	return s
}

func sample(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	got, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 100,
		Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: argument(r, "prompt")}}}})
	if err != nil {
		return nil, err
	}
	answer := ""
	if t, ok := got.Content.(*sdk.TextContent); ok {
		answer = t.Text
	}
	return text("LLM response: %s", answer), nil
}

func elicit(ctx context.Context, r *sdk.CallToolRequest, format, message, schema string) (*sdk.CallToolResult, error) {
	got, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: message, RequestedSchema: json.RawMessage(schema)})
	if err != nil {
		return nil, err
	}
	content, err := json.Marshal(got.Content)
	if err != nil {
		return nil, err
	}
	return text(format, got.Action, content), nil
}

func resources(s *sdk.Server) {
	add := func(c sdk.ResourceContents) {
		s.AddResource(&sdk.Resource{URI: c.URI, Name: strings.TrimPrefix(c.URI, "test://"), Description: "For tests.", MIMEType: c.MIMEType},
			func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{&c}}, nil
			})
	}
	add(sdk.ResourceContents{URI: "test://static-text", MIMEType: "text/plain", Text: "This is the content of the static text resource."})
	add(sdk.ResourceContents{URI: "test://static-binary", MIMEType: "image/png", Blob: bytesOf(pixel)})
	add(sdk.ResourceContents{URI: "test://watched-resource", MIMEType: "text/plain", Text: "It stays as it is."})
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template", Description: "For tests.", MIMEType: "application/json"},
		func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
			body, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
			if err != nil {
				return nil, err
			}
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "application/json", Text: string(body)}}}, nil
		})
}

func prompts(s *sdk.Server) {
	say := func(c ...sdk.Content) (*sdk.GetPromptResult, error) {
		r := &sdk.GetPromptResult{}
		for _, x := range c {
			r.Messages = append(r.Messages, &sdk.PromptMessage{Role: "user", Content: x})
		}
		return r, nil
	}
	add := func(name string, args []string, f func(map[string]string) (*sdk.GetPromptResult, error)) {
		p := &sdk.Prompt{Name: name, Description: "For tests."}
		for _, a := range args {
			p.Arguments = append(p.Arguments, &sdk.PromptArgument{Name: a, Description: "An argument.", Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return f(r.Params.Arguments)
		})
	}
	add("test_simple_prompt", nil, func(map[string]string) (*sdk.GetPromptResult, error) {
		return say(&sdk.TextContent{Text: "This is a simple prompt for testing."})
	})
	add("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(a map[string]string) (*sdk.GetPromptResult, error) {
		return say(&sdk.TextContent{Text: fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])})
	})
	add("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(a map[string]string) (*sdk.GetPromptResult, error) {
		return say(&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: a["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}},
			&sdk.TextContent{Text: "Please process the embedded resource above."})
	})
	add("test_prompt_with_image", nil, func(map[string]string) (*sdk.GetPromptResult, error) {
		return say(&sdk.ImageContent{MIMEType: "image/png", Data: bytesOf(pixel)}, &sdk.TextContent{Text: "Please analyze the image above."})
	})
}
