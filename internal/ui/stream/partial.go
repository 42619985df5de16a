package stream

import (
	"encoding/json"
	"slices"

	"github.com/seed-eb844fcb/cinch/internal/agent"
	"github.com/seed-eb844fcb/cinch/internal/lib/sdkwire"
	"github.com/seed-eb844fcb/cinch/internal/ui/frame"
)

// A partial is the running response as the host was told of it.
type partial struct {
	id   string
	open []int // text blocks that were begun and not ended
	live bool  // message_start went out, message_stop did not
}

// wrote tells the deltas of a running response, and what became of an attempt.
func (h *host) wrote(e agent.Event, d agent.Delta) error {
	switch d := d.(type) {
	case agent.Retrying:
		f := sdkwire.APIRetry{
			Type: "system", Subtype: "api_retry", Attempt: d.Attempt, MaxRetries: d.Max,
			RetryDelayMS: d.Wait.Milliseconds(), Error: d.Kind, SessionID: h.session, UUID: frame.UUID(),
		}
		if d.Status != 0 {
			f.ErrorStatus = &d.Status
		}
		return h.write(f)
	case agent.Switched:
		return h.write(sdkwire.ModelFallback{
			Type: "system", Subtype: "model_fallback", Trigger: d.Reason, OriginalModel: d.From, FallbackModel: d.To,
			Content: d.From + " did not answer; " + d.To + " goes on.", SessionID: h.session, UUID: frame.UUID(),
		})
	}
	if !h.o.Partial || e.Agent != "" {
		return nil // compat: partial messages are told of the main conversation only
	}
	p := &h.part
	switch d := d.(type) {
	case agent.Begin:
		*p = partial{id: d.MessageID, live: true, open: p.open[:0]}
		start := messageStart{Type: "message_start"}
		start.Message = sdkwire.Message{ID: d.MessageID, Type: "message", Role: "assistant", Model: d.Model, Content: json.RawMessage("[]"), Usage: frame.Usage(d.Usage)}
		return h.raw(start)
	case agent.BlockBegin:
		if _, text := d.Block.(*agent.Text); text {
			p.open = append(p.open, d.Index)
		}
		return h.raw(blockEvent{Type: "content_block_start", Index: d.Index, Block: agent.AppendBlock(nil, d.Block)})
	case agent.Chunk:
		return h.raw(blockEvent{Type: "content_block_delta", Index: d.Index, Delta: piece(d)})
	case agent.BlockEnd:
		p.open = slices.DeleteFunc(p.open, func(i int) bool { return i == d.Index })
		return h.raw(blockEvent{Type: "content_block_stop", Index: d.Index})
	case agent.Stopped:
		ev := messageDelta{Type: "message_delta", Usage: frame.Usage(d.Usage)}
		ev.Delta.Stop, ev.Delta.Sequence = sdkwire.OrNull(d.Stop), sdkwire.OrNull(d.Sequence)
		return h.raw(ev)
	case agent.Done:
		p.live = false
		return h.raw(messageStop{"message_stop"})
	case agent.Unknown:
		if d.Type != "ping" && json.Valid(d.Raw) {
			return h.raw(d.Raw)
		}
	case agent.Reset:
		return h.closePartial()
	}
	return nil
}

// closePartial ends a broken attempt for the host: an open text block and
// the message get their stops, so that a consumer's state is at rest.
func (h *host) closePartial() error {
	p := &h.part
	if !p.live {
		return nil
	}
	p.live = false
	for _, i := range p.open {
		if err := h.raw(blockEvent{Type: "content_block_stop", Index: i}); err != nil {
			return err
		}
	}
	p.open = p.open[:0]
	return h.raw(messageStop{"message_stop"})
}

// raw passes on one event of the model's stream.
func (h *host) raw(ev any) error {
	b, err := sdkwire.Append(nil, ev)
	if err != nil {
		return err
	}
	return h.write(sdkwire.StreamEvent{Type: "stream_event", Event: b[:len(b)-1], SessionID: h.session, UUID: frame.UUID(), APIMessageID: h.part.id})
}

type (
	messageStart struct {
		Type    string          `json:"type"`
		Message sdkwire.Message `json:"message"`
	}
	messageDelta struct {
		Type  string `json:"type"`
		Delta struct {
			Stop     *string `json:"stop_reason"`
			Sequence *string `json:"stop_sequence"`
		} `json:"delta"`
		Usage sdkwire.Usage `json:"usage"`
	}
	messageStop struct {
		Type string `json:"type"`
	}
	blockEvent struct {
		Type  string          `json:"type"`
		Index int             `json:"index"`
		Block json.RawMessage `json:"content_block,omitempty"`
		Delta json.RawMessage `json:"delta,omitempty"`
	}
)

// piece is the delta of a content_block_delta.
func piece(c agent.Chunk) json.RawMessage {
	b := append([]byte(`{"type":`), agent.AppendString(nil, c.Kind)...)
	switch c.Kind {
	case "text_delta":
		b = append(b, `,"text":`...)
	case "thinking_delta":
		b = append(b, `,"thinking":`...)
	case "signature_delta":
		b = append(b, `,"signature":`...)
	case "input_json_delta":
		b = append(b, `,"partial_json":`...)
	case "citations_delta":
		if json.Valid([]byte(c.Text)) {
			return append(append(append(b, `,"citation":`...), c.Text...), '}')
		}
		b = append(b, `,"citation":`...)
	default:
		if json.Valid([]byte(c.Text)) {
			return json.RawMessage(c.Text)
		}
		b = append(b, `,"text":`...)
	}
	return append(agent.AppendString(b, c.Text), '}')
}
