package app

import (
	"strconv"
	"strings"
	"time"
)

// An environment is what the program was started with, under the env block
// of the settings.
type environment struct {
	list []string // KEY=value, each key once
	at   map[string]int
}

func newEnvironment(environ []string, over map[string]string) environment {
	e := environment{at: map[string]int{}}
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			e.set(k, v)
		}
	}
	for k, v := range over {
		e.set(k, v)
	}
	return e
}

func (e *environment) set(k, v string) {
	if i, ok := e.at[k]; ok {
		e.list[i] = k + "=" + v
		return
	}
	e.at[k] = len(e.list)
	e.list = append(e.list, k+"="+v)
}

// get returns the value of name, or "".
func (e environment) get(name string) string {
	if i, ok := e.at[name]; ok {
		return e.list[i][len(name)+1:]
	}
	return ""
}

// first returns the value of the first of names that has one.
func (e environment) first(names ...string) string {
	for _, n := range names {
		if v := e.get(n); v != "" {
			return v
		}
	}
	return ""
}

// on reports whether name is set to a word that means yes.
func (e environment) on(name string) bool {
	v, _ := e.choice(name)
	return v
}

// choice reads a switch; ok is false if it is not set or no such word.
func (e environment) choice(name string) (on, ok bool) {
	switch strings.ToLower(e.get(name)) {
	case "1", "true", "yes", "on":
		return true, true
	case "0", "false", "no", "off":
		return false, true
	}
	return false, false
}

// number reads forms such as 120000, 64_000 and 2e3; def stands in for
// anything else.
func (e environment) number(name string, def int) int {
	v := strings.ReplaceAll(e.get(name), "_", "")
	if v == "" {
		return def
	}
	if n, err := strconv.Atoi(v); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(v, 64); err == nil && f == float64(int(f)) {
		return int(f)
	}
	return def
}

// ms reads a number of milliseconds; 0 if there is none.
func (e environment) ms(name string) time.Duration {
	return time.Duration(e.number(name, 0)) * time.Millisecond
}

// onOr reads a switch that has a default.
func (e environment) onOr(name string, def bool) bool {
	if on, ok := e.choice(name); ok {
		return on
	}
	return def
}

// without returns the environment without one variable.
func (e environment) without(name string) []string {
	i, ok := e.at[name]
	if !ok {
		return e.list
	}
	return append(append([]string(nil), e.list[:i]...), e.list[i+1:]...)
}
