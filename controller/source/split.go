package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Document is one document of a manifest file.
type Document struct {
	Number int    // from 1, documents without content are counted too
	Line   int    // line of the file on which it starts, from 1
	Data   []byte // a view into the file
	JSON   bool   // Data is JSON, not YAML
	Err    error  // Data cannot be separated from the rest of the file, which is lost with it
}

// Split returns the documents of a manifest file that have content. YAML documents
// are separated by lines beginning with "---" (YAML 1.2 section 9.2), JSON documents
// follow each other. The documents are views into data.
func Split(data []byte, isJSON bool) []Document {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if isJSON {
		return splitJSON(data)
	}
	return splitYAML(data)
}

func splitYAML(data []byte) []Document {
	var docs []Document
	number, line := 1, 1
	start, startLine := 0, 1
	// A document that holds only a marker before the first content does not count.
	content := false
	add := func(end int) {
		if part := data[start:end]; hasContent(part) {
			docs = append(docs, Document{Number: number, Line: startLine, Data: part})
			content = true
		}
	}
	for at := 0; at < len(data); {
		next := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		if isMarker(data[at:next], "---") || isMarker(data[at:next], "...") {
			add(at)
			if data[at] == '-' && (content || number > 1) {
				number++
			}
			// What follows the marker on its line belongs to the new document.
			start, startLine = at+3, line
		}
		at = next
		line++
	}
	add(len(data))
	return docs
}

// isMarker reports whether a line is the document marker m, alone or followed by a
// blank. "-----BEGIN" is none.
func isMarker(line []byte, m string) bool {
	if !bytes.HasPrefix(line, []byte(m)) {
		return false
	}
	return len(line) == len(m) || line[len(m)] == ' ' || line[len(m)] == '\t' || line[len(m)] == '\n' || line[len(m)] == '\r'
}

// hasContent reports whether a YAML text holds more than blanks, comments and
// directives.
func hasContent(text []byte) bool {
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return true
		}
	}
	return false
}

func splitJSON(data []byte) []Document {
	var docs []Document
	dec := json.NewDecoder(bytes.NewReader(data))
	for number := 1; ; number++ {
		start := int(dec.InputOffset())
		line := func(at int) int { return 1 + bytes.Count(data[:at], []byte{'\n'}) }
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return docs
		}
		if err != nil {
			return append(docs, Document{Number: number, Line: line(start), JSON: true, Err: fmt.Errorf("cannot parse JSON: %w", err)})
		}
		docs = append(docs, Document{Number: number, Line: line(int(dec.InputOffset()) - len(raw)), Data: raw, JSON: true})
	}
}
