package session

import (
	"errors"
	"fmt"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// explain words a failed request for the person: what happened, where, and
// what to do. compat: the words at the head of each text are those that
// scripts look for.
func explain(err error) agent.Trouble {
	var m *agent.ModelError
	if !errors.As(err, &m) {
		return agent.Trouble{Kind: "unknown", Text: "API Error: " + err.Error()}
	}
	t := agent.Trouble{Kind: kind(m), Status: m.Status, Type: m.Type}
	where := ""
	if m.Gateway != "" {
		where = " from " + m.Gateway
	}
	switch {
	case m.Fault == agent.FaultTooLong:
		t.Text = "Prompt is too long · " + m.Message + "\nhint: /compact shortens the conversation, /clear starts a new one."
	case m.Fault == agent.FaultTooLarge:
		t.Text = "Request too large · " + m.Message + "\nhint: take out images or documents, or start anew with /clear."
	case m.Fault == agent.FaultAuth && m.Status == 0:
		t.Text = "Not logged in · " + m.Message + "\nhint: set ANTHROPIC_API_KEY, or apiKeyHelper in the settings."
	case m.Fault == agent.FaultAuth && m.Status == 403:
		t.Text = fmt.Sprintf("API Error: 403 access refused%s · %s\nhint: the key may not be meant for this model, organisation or gateway.", where, m.Message)
	case m.Fault == agent.FaultAuth:
		t.Text = fmt.Sprintf("Invalid API key%s · %s\nhint: check ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or apiKeyHelper.", where, m.Message)
	case m.Fault == agent.FaultBilling:
		t.Text = "Credit balance is too low · " + m.Message
	case m.Fault == agent.FaultModel:
		t.Text = fmt.Sprintf("The selected model cannot be used%s · %s\nhint: choose another with --model or /model.", where, m.Message)
	case m.Status == 429:
		t.Text = fmt.Sprintf("API Error: Request rejected (429)%s · %s", where, m.Message)
	case m.Status == 529:
		t.Text = fmt.Sprintf("API Error: Repeated 529 Overloaded errors%s · %s\nhint: try again in a while, or name a --fallback-model.", where, m.Message)
	case m.Status != 0:
		t.Text = fmt.Sprintf("API Error: %d %s%s", m.Status, m.Message, where)
		if m.Status >= 500 {
			t.Text += "\nhint: the fault is there, not here; try again in a while."
		}
	case m.Fault == agent.FaultTruncated:
		t.Text = fmt.Sprintf("API Error: the connection%s broke while the answer came (%s). The response above may be incomplete.\nhint: ask to go on.", where, m.Message)
	case m.Op == "connect":
		t.Text = "API Error: " + m.Message // it names the host, and what can be done about this failure
		if m.Fault == agent.FaultTransient {
			t.Text += "\nhint: check the network, the proxy settings and ANTHROPIC_BASE_URL."
		}
	default:
		t.Text = "API Error: " + m.Message + where
	}
	if m.RequestID != "" {
		t.Text += " (request " + m.RequestID + ")"
	}
	return t
}

func kind(m *agent.ModelError) string {
	switch {
	case m.Fault == agent.FaultAuth:
		return "authentication_failed"
	case m.Fault == agent.FaultBilling:
		return "billing_error"
	case m.Fault == agent.FaultModel:
		return "model_not_found"
	case m.Fault == agent.FaultTooLong, m.Fault == agent.FaultTooLarge, m.Fault == agent.FaultBlock, m.Status == 400:
		return "invalid_request"
	case m.Status == 429:
		return "rate_limit"
	case m.Status == 529:
		return "overloaded"
	case m.Status >= 500, m.Status == 408:
		return "server_error"
	}
	return "unknown"
}
