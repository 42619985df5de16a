package history

import (
	"io"
	"slices"
)

// links reports whether r may be part of the conversation.
func (s *Scan) links(r *row) bool {
	return r.kind != other && (s.Agent || !r.side)
}

// Leaf returns the uuid of the line at which the conversation ends, the last
// one of it; "" if there is none. Where lines have changed places it is the last
// that hangs on that.
func (s *Scan) Leaf() string {
	leaf := len(s.rows) - 1
	for leaf >= 0 && !s.links(&s.rows[leaf]) {
		leaf--
	}
	for i := leaf - 1; i >= 0; i-- {
		r := &s.rows[i]
		if r.parent == s.rows[leaf].uuid && s.links(r) && !r.boundary && !s.descends(leaf, i) {
			leaf, i = i, len(s.rows)
		}
	}
	return s.uuid(leaf)
}

func (s *Scan) uuid(i int) string {
	if i < 0 {
		return ""
	}
	return s.rows[i].uuid
}

// Has reports whether there is a line with that uuid.
func (s *Scan) Has(uuid string) bool {
	_, ok := s.index[uuid]
	return ok
}

// Through returns the line at which a conversation ends that goes up to the
// message of the line uuid.
func (s *Scan) Through(uuid string) string {
	i := s.index[uuid]
	for j := i + 1; j < len(s.rows) && s.rows[j].before && s.rows[j].parent == s.rows[i].uuid; j++ {
		i = j // the notes that stand in front of a prompt
	}
	return s.uuid(i)
}

// Before returns the line at which a conversation ends that goes up to the
// prompt of the line uuid, without it; "" if it is the first.
func (s *Scan) Before(uuid string) string {
	// What was added for the model in front of the prompt goes with it.
	i := s.parent(s.index[uuid], nil)
	for i >= 0 && s.rows[i].kind == attachmentLine {
		i = s.parent(i, nil)
	}
	return s.uuid(i)
}

// descends reports whether row i hangs on row from, over any number of rows.
func (s *Scan) descends(i, from int) bool {
	for range len(s.rows) { // more would be a cycle
		if i == from {
			return true
		}
		j, ok := s.index[s.rows[i].parent]
		if !ok {
			return false
		}
		i = j
	}
	return true
}

// before returns the row of the conversation that stands before row i in the
// file, or -1.
func (s *Scan) before(i int, seen map[int]bool) int {
	for i--; i >= 0; i-- {
		if s.links(&s.rows[i]) && !seen[i] {
			return i
		}
	}
	return -1
}

// parent returns the row before row i in the conversation, or -1. A row
// that names none, or one that is not there, comes after its neighbour.
func (s *Scan) parent(i int, seen map[int]bool) int {
	r := &s.rows[i]
	if r.boundary || r.root {
		return -1
	}
	if j, ok := s.index[r.parent]; ok && !seen[j] && r.parent != "" {
		return j
	}
	return s.before(i, seen)
}

// walk returns the rows from the last boundary, or the first row, to leaf.
func (s *Scan) walk(leaf int) []int {
	var rows []int
	seen := map[int]bool{}
	for i := leaf; i >= 0; i = s.parent(i, seen) {
		seen[i] = true
		rows = append(rows, i)
	}
	slices.Reverse(rows)
	return rows
}

// conversation returns the rows of the conversation that ends with leaf, in
// order.
func (s *Scan) conversation(f io.ReaderAt, leaf string) []int {
	i, ok := s.index[leaf]
	if !ok {
		return nil
	}
	rows := s.walk(i)
	if s.rows[rows[0]].boundary {
		rows = s.preserved(f, rows)
	}
	return s.siblings(rows)
}

// preserved puts the rows that a compaction kept behind their anchor.
func (s *Scan) preserved(f io.ReaderAt, rows []int) []int {
	data, err := s.rows[rows[0]].bytes(f, nil)
	if err != nil {
		return rows
	}
	k := keptOf(data)
	var kept []int
	in := map[int]bool{}
	for _, i := range rows {
		in[i] = true
	}
	for _, u := range k.uuids {
		if i, ok := s.index[u]; ok && !in[i] {
			in[i] = true
			kept = append(kept, i)
		}
	}
	if len(k.uuids) == 0 && k.tail != "" {
		head, hasHead := s.index[k.head]
		seen := map[int]bool{}
		for i, ok := s.index[k.tail]; ok && i >= 0 && !in[i]; i = s.parent(i, seen) {
			seen[i], in[i] = true, true
			kept = append(kept, i)
			if hasHead && i == head {
				break
			}
		}
		slices.Reverse(kept)
	}
	at := 1
	for p, i := range rows {
		if s.rows[i].uuid == k.anchor {
			at = p + 1
		}
	}
	return slices.Insert(rows, at, kept...)
}

// A keep says which lines a compaction kept, and behind which they belong.
type keep struct {
	anchor, head, tail string
	uuids              []string
}

func keptOf(data []byte) (k keep) {
	// What cannot be read keeps nothing: the walks below stop early.
	_ = Fields(data, func(name, meta []byte) bool {
		if string(name) != "compactMetadata" {
			return true
		}
		_ = Fields(meta, func(name, value []byte) bool {
			if n := string(name); n != "preservedSegment" && n != "preservedMessages" {
				return true
			}
			_ = Fields(value, func(name, value []byte) bool {
				switch t, _ := Unquote(value); string(name) {
				case "anchorUuid":
					k.anchor = t
				case "headUuid":
					k.head = t
				case "tailUuid":
					k.tail = t
				case "uuids":
					_ = elements(value, func(e []byte) {
						u, _ := Unquote(e)
						k.uuids = append(k.uuids, u)
					})
				}
				return true
			})
			return true
		})
		return false
	})
	return k
}

// siblings adds the rows of parallel calls that the walk has missed. In files
// of the reference each result hangs on its own call, so that the walk from
// the last of them sees only one. Rows that a rewind left behind stay out: the
// walk goes from their response to a prompt, not to a result.
func (s *Scan) siblings(rows []int) []int {
	in := map[int]bool{}
	called := map[string]bool{} // responses whose calls have gone on
	for p, i := range rows {
		in[i] = true
		if r := &s.rows[i]; r.kind == assistantLine && r.msg != "" && p+1 < len(rows) && s.rows[rows[p+1]].result {
			called[r.msg] = true
		}
	}
	if len(called) == 0 {
		return rows
	}
	more := map[int][]int{} // rows to add, by the row they follow
	for i := range s.rows {
		r := &s.rows[i]
		if in[i] || !s.links(r) {
			continue
		}
		p, ok := s.index[r.parent]
		if !ok || r.parent == "" {
			continue
		}
		of := &s.rows[p]
		switch {
		case r.kind == assistantLine && called[r.msg] && of.msg == r.msg:
		case r.kind == userLine && r.result && of.kind == assistantLine && called[of.msg]:
		default:
			continue
		}
		if in[p] {
			in[i] = true
			more[p] = append(more[p], i)
		}
	}
	if len(more) == 0 {
		return rows
	}
	var all []int
	var add func(i int)
	add = func(i int) {
		all = append(all, i)
		for _, j := range more[i] {
			add(j)
		}
	}
	for _, i := range rows {
		add(i)
	}
	return all
}
