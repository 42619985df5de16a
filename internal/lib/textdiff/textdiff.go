// Package textdiff compares texts line by line and gives the difference as
// hunks, in the shape of the SDK's structuredPatch. It knows no files.
package textdiff

// A Hunk is one stretch of a difference with its context. Lines begin with
// ' ', '-' or '+' and have no line end; a "\ No newline at end of file" line
// follows a last line without one and is not counted.
type Hunk struct {
	OldStart int      `json:"oldStart"`
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Lines    []string `json:"lines"`
}
