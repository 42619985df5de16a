package file

import (
	"encoding/json"

	"github.com/seed-eb844fcb/cinch/internal/agent"
)

// The schemas have the reference's property order and bounds; the words are ours.

var readSpec = agent.Spec{
	Name: "Read",
	Description: `Returns the content of a file on this machine.

- Text comes as numbered lines: the number, a tab, then the line as it is in the file. The number and the tab are not part of the file.
- Without offset and limit the whole file is returned if it fits; else the first part of it, with a PARTIAL notice that says where to go on.
- Images (PNG, JPEG, GIF, WebP, BMP, TIFF) are shown to you. PDF files come as documents; above 10 pages name the ones you want in pages. Notebooks (.ipynb) come cell by cell, with their outputs; offset and limit then count cells.
- Directories cannot be read: use Glob, or ls.
- Several files are best read with several calls at once.`,
	Schema: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{` +
		`"file_path":{"description":"Path of the file, best absolute","type":"string"},` +
		`"offset":{"description":"First line to return, counted from 1","type":"integer","minimum":0,"maximum":9007199254740991},` +
		`"limit":{"description":"How many lines to return","type":"integer","exclusiveMinimum":0,"maximum":9007199254740991},` +
		`"pages":{"description":"For PDF files: a page or a range such as \"3\" or \"1-5\", at most 20 pages","type":"string"},` +
		`"allow_large":{"description":"Return up to four times as much text as usual","type":"boolean"}},` +
		`"required":["file_path"],"additionalProperties":false}`),
}

var writeSpec = agent.Spec{
	Name: "Write",
	Description: `Writes a whole file: creates it, with the directories it needs, or replaces what it held.

- The content is written as given, blanks at line ends included. A file that exists keeps its encoding, its line ends, its mode and its links.
- To change a part of a file, use Edit.
- A file that you have seen only in part, or that has changed since you read it, must be read again before it is replaced.`,
	Schema: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{` +
		`"file_path":{"description":"Path of the file, best absolute","type":"string"},` +
		`"content":{"description":"All of the new content","type":"string"}},` +
		`"required":["file_path","content"],"additionalProperties":false}`),
}

var editSpec = agent.Spec{
	Name: "Edit",
	Description: `Replaces one piece of text in a file by another.

- old_string must be in the file exactly as Read shows it, tabs and blanks included, but without line numbers and the tab behind them. Line ends match in any style; new lines take the style of the file.
- It must be there once: add lines around it until it is unique, or set replace_all to change every occurrence.
- An empty old_string creates a file, or fills an empty one.`,
	Schema: json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{` +
		`"file_path":{"description":"Path of the file, best absolute","type":"string"},` +
		`"old_string":{"description":"The text to replace","type":"string"},` +
		`"new_string":{"description":"The text to put there; must differ from old_string","type":"string"},` +
		`"replace_all":{"description":"Replace every occurrence","default":false,"type":"boolean"}},` +
		`"required":["file_path","old_string","new_string"],"additionalProperties":false}`),
}
