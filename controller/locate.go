package controller

import (
	"bytes"
	"regexp"
	"strings"

	"turnout/controller/source"
)

// places finds the lines of manifests that something is said about.
type places struct {
	texts map[string][]byte // of files, by name
	docs  map[string][]source.Document
	items map[*source.Document]map[string]piece // of lists
}

// fieldPattern is a path of fields as messages name them.
var fieldPattern = regexp.MustCompile(`\b(?:spec|metadata)(?:\.[A-Za-z0-9]+(?:\[[^\]]*\])?)+`)

// annotationPattern is a key as messages name it.
var annotationPattern = regexp.MustCompile(`^annotation ([^\s:]+)`)

// linePattern is a line as errors of YAML name it: of the file.
var yamlLinePattern = regexp.MustCompile(`\bline ([0-9]+)`)

// line returns where in a document of a file the first field that a text about an object names is, or how far its path is found; the first line of
// the object with content if it names none; 0 without such a document. The object is called as source.Problem does; in a list it is looked for in its
// item.
func (p *places) line(file string, document int, object, text string) int {
	doc := p.document(file, document)
	if doc == nil {
		return 0
	}
	if m := yamlLinePattern.FindStringSubmatch(text); m != nil {
		if n := number(m[1]); n >= doc.Line && n <= doc.Line+bytes.Count(doc.Data, []byte{'\n'}) {
			return n
		}
	}
	in, ok := p.itemsIn(doc)[object]
	if !ok {
		in = piece{doc.Line, doc.Data}
	}
	at := start(in.data)
	var path []string
	if m := annotationPattern.FindStringSubmatch(text); m != nil {
		path = []string{"annotations", m[1]}
	} else if field := fieldPattern.FindString(text); field != "" {
		path = strings.Split(field, ".")
	}
	from := 0
	for _, name := range path {
		name, _, _ = strings.Cut(name, "[")
		found := keyAt(in.data, from, name)
		if found < 0 {
			break
		}
		at, from = found, found+len(name)
	}
	return in.line + bytes.Count(in.data[:at], []byte{'\n'})
}

// number is that of digits, 0 for more of them than a file has lines.
func number(digits string) (n int) {
	if len(digits) > 9 {
		return 0
	}
	for _, d := range digits {
		n = 10*n + int(d-'0')
	}
	return n
}

// start is where the content of a document begins.
func start(data []byte) int {
	for at := 0; at < len(data); {
		end := bytes.IndexByte(data[at:], '\n')
		if end < 0 {
			end = len(data) - at
		}
		line := bytes.TrimSpace(data[at : at+end])
		if len(line) > 0 && line[0] != '#' && line[0] != '%' && string(line) != "---" {
			return at
		}
		at += end + 1
	}
	return 0
}

// keyAt is where a key of a mapping stands from an offset on, below 0 if it does not.
func keyAt(data []byte, from int, key string) int {
	for at := from; at < len(data); {
		i := bytes.Index(data[at:], []byte(key))
		if i < 0 {
			return -1
		}
		at += i
		end := at + len(key)
		before := at == 0 || strings.IndexByte(" \t\n{,\"'", data[at-1]) >= 0
		after := bytes.TrimLeft(data[end:], "\"' \t")
		if before && len(after) > 0 && after[0] == ':' {
			return at
		}
		at = end
	}
	return -1
}

// itemsIn is itemsOf, found once.
func (p *places) itemsIn(doc *source.Document) map[string]piece {
	items, ok := p.items[doc]
	if !ok {
		if p.items == nil {
			p.items = make(map[*source.Document]map[string]piece)
		}
		items = itemsOf(doc)
		p.items[doc] = items
	}
	return items
}

// document is one of a file, nil if there is none.
func (p *places) document(file string, document int) *source.Document {
	text, ok := p.texts[file]
	if !ok {
		return nil
	}
	docs, ok := p.docs[file]
	if !ok {
		if p.docs == nil {
			p.docs = make(map[string][]source.Document)
		}
		docs = source.Split(text, strings.HasSuffix(file, ".json"))
		p.docs[file] = docs
	}
	for i := range docs {
		if docs[i].Number == document {
			return &docs[i]
		}
	}
	return nil
}
