package file

import "github.com/seed-eb844fcb/cinch/internal/lib/textdiff"

// The Details below are the tool_use_result shapes of the SDK: names and
// order are the reference's.

// A ReadDetail is the Detail of a Read.
type ReadDetail struct {
	Type string `json:"type"` // text, image, pdf, parts, notebook
	File any    `json:"file"`
}

// A TextFile is the file of a ReadDetail of type text.
type TextFile struct {
	FilePath            string `json:"filePath"`
	Content             string `json:"content"`
	NumLines            int    `json:"numLines"`
	StartLine           int    `json:"startLine"`
	TotalLines          int    `json:"totalLines"`
	TruncatedByTokenCap bool   `json:"truncatedByTokenCap,omitempty"`
}

// An ImageFile is the file of a ReadDetail of type image.
type ImageFile struct {
	Base64       string      `json:"base64"`
	Type         string      `json:"type"` // image/png, …
	OriginalSize int64       `json:"originalSize"`
	Dimensions   *Dimensions `json:"dimensions,omitempty"`
}

// Dimensions are in pixels: of the file, and of what the model was shown.
type Dimensions struct {
	OriginalWidth  int `json:"originalWidth"`
	OriginalHeight int `json:"originalHeight"`
	DisplayWidth   int `json:"displayWidth"`
	DisplayHeight  int `json:"displayHeight"`
}

// A PDFFile is the file of a ReadDetail of type pdf.
type PDFFile struct {
	FilePath     string `json:"filePath"`
	Base64       string `json:"base64"`
	OriginalSize int64  `json:"originalSize"`
}

// A PartsFile is the file of a ReadDetail of type parts: some pages of a PDF.
type PartsFile struct {
	FilePath     string `json:"filePath"`
	OriginalSize int64  `json:"originalSize"`
	Count        int    `json:"count"`
	OutputDir    string `json:"outputDir"`
}

// A NotebookFile is the file of a ReadDetail of type notebook.
type NotebookFile struct {
	FilePath string `json:"filePath"`
	Cells    any    `json:"cells"`
}

// A WriteDetail is the Detail of a Write.
type WriteDetail struct {
	Type            string          `json:"type"` // create, update
	FilePath        string          `json:"filePath"`
	Content         string          `json:"content"`
	StructuredPatch []textdiff.Hunk `json:"structuredPatch"`
	OriginalFile    *string         `json:"originalFile"` // null for a new or a very big file
	UserModified    bool            `json:"userModified"`
}

// An EditDetail is the Detail of an Edit.
type EditDetail struct {
	FilePath        string          `json:"filePath"`
	OldString       string          `json:"oldString"`
	NewString       string          `json:"newString"`
	OriginalFile    *string         `json:"originalFile"` // null for a very big file
	StructuredPatch []textdiff.Hunk `json:"structuredPatch"`
	UserModified    bool            `json:"userModified"`
	ReplaceAll      bool            `json:"replaceAll"`
}

// maxOriginal bounds the original that a Detail carries: it is written to the
// transcript with every edit.
const maxOriginal = 1 << 20

func original(s string) *string {
	if len(s) > maxOriginal {
		return nil
	}
	return &s
}
