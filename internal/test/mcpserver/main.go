package mcpserver

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// A File is a script as the end-to-end tests write it.
type File struct {
	// Tools are served; from the first call of the tool "turn" on Later are,
	// or, with Fickle, from the second listing on.
	Tools, Later []json.RawMessage
	Fickle       bool
	Caps         json.RawMessage
	Instructions string
	// Results answer methods, or calls under "tool:NAME". $PARAMS within a
	// string stands for the parameters of the request.
	Results map[string]json.RawMessage
	// Refuse answers a method with an error where the parameters hold
	// that string.
	Refuse map[string]map[string]string
	// Noise goes to standard output before anything else.
	Noise string
	// Slow is how many milliseconds pass before the first message is read.
	Slow int
	// Stubborn servers end neither with their input nor at SIGTERM.
	Stubborn bool
	// Log, if not "", is the file that gets a line for each call of a tool.
	Log string
}

// Main serves the File that args names on standard input and output, and
// returns the exit code.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(errs, "usage: mcpserver FILE")
		return 2
	}
	raw, err := os.ReadFile(args[0])
	var f File
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil {
		fmt.Fprintln(errs, "mcpserver:", err)
		return 1
	}
	if f.Noise != "" {
		fmt.Fprintln(out, f.Noise)
	}
	if f.Stubborn {
		signal.Ignore(syscall.SIGTERM)
	}
	time.Sleep(time.Duration(f.Slow) * time.Millisecond)
	Stdio(in, out, f.script(), func() { os.Exit(7) })
	if f.Stubborn {
		time.Sleep(time.Minute) // whoever started it ends it
	}
	return 0
}

func (f File) script() *Script {
	var turned atomic.Bool
	s := &Script{Caps: string(f.Caps), On: map[string]func(*Conn, Request) (string, error){}}
	for name, result := range f.Results {
		s.On[name] = func(_ *Conn, r Request) (string, error) {
			for key, why := range f.Refuse[name] {
				if strings.Contains(string(r.Params), `"`+key+`"`) {
					return "", &RPCError{-32002, why}
				}
			}
			params, _ := json.Marshal(string(r.Params)) // a string always encodes
			return strings.ReplaceAll(string(result), "$PARAMS", strings.Trim(string(params), `"`)), nil
		}
	}
	if f.Tools != nil {
		s.On["tools/list"] = func(*Conn, Request) (string, error) {
			list := f.Tools
			if turned.Load() {
				list = f.Later
			}
			turned.CompareAndSwap(false, f.Fickle)
			b, err := json.Marshal(map[string]any{"tools": list})
			return string(b), err
		}
	}
	if f.Instructions != "" {
		caps := s.Caps
		if caps == "" {
			caps = `{"tools":{"listChanged":true}}`
		}
		text, _ := json.Marshal(f.Instructions) // a string always encodes
		s.On["initialize"] = func(*Conn, Request) (string, error) {
			return `{"protocolVersion":"2025-11-25","capabilities":` + caps + `,"serverInfo":{"name":"scripted","version":"1"},"instructions":` + string(text) + `}`, nil
		}
	}
	s.On["tool:turn"] = func(c *Conn, _ Request) (string, error) {
		turned.Store(true)
		c.Notify("notifications/tools/list_changed", "{}")
		return Text("turned"), nil
	}
	if f.Log != "" {
		for name, do := range s.On {
			tool, ok := strings.CutPrefix(name, "tool:")
			if !ok {
				continue
			}
			s.On[name] = func(c *Conn, r Request) (string, error) {
				w, err := os.OpenFile(f.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				if err != nil {
					return "", err
				}
				fmt.Fprintln(w, tool)
				if err := w.Close(); err != nil {
					return "", err
				}
				return do(c, r)
			}
		}
	}
	return s
}
