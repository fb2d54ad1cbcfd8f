package controller

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"turnout/controller/source"
)

// piece is a part of a document: where it begins, and what it holds.
type piece struct {
	line int // of the file
	data []byte
}

// itemsOf are the items of a document that is a list, by all names that findings have for them: "Route shop/front", "item 3". A document that is no
// list has none, and neither has a list whose items are written in YAML's flow style without being JSON.
func itemsOf(doc *source.Document) map[string]piece {
	items := make(map[string]piece)
	if bytes.Contains(doc.Data, []byte("items")) {
		addItems(items, piece{doc.Line, doc.Data}, "", 0)
	}
	return items
}

// maxListDepth is how deep lists of lists are looked into.
const maxListDepth = 8

// addItems adds the items of p if it is a list. place is what p is called as an item itself.
func addItems(to map[string]piece, p piece, place string, depth int) {
	var list objectHead
	if depth == maxListDepth || yaml.Unmarshal(p.data, &list) != nil || !strings.HasSuffix(list.Kind, "List") || list.Metadata.Name != "" {
		return
	}
	split := blockItems
	if content := bytes.TrimSpace(p.data); len(content) > 0 && content[0] == '{' {
		split = jsonItems
	}
	for i, item := range split(p) {
		name := strings.TrimSpace(place + " item " + strconv.Itoa(i+1))
		to[name] = item
		addItems(to, item, name, depth+1)
		head := objectHead{Kind: strings.TrimSuffix(list.Kind, "List")}
		if yaml.Unmarshal(item.data, &head) != nil || head.Metadata.Name == "" {
			continue
		}
		key := source.Key{Namespace: head.Metadata.Namespace, Name: head.Metadata.Name}
		if key.Namespace == "" && head.Kind != source.Namespace.String() && head.Kind != source.IngressClass.String() {
			key.Namespace = metav1.NamespaceDefault
		}
		if name = head.Kind + " " + key.String(); to[name].data == nil { // the first one is served
			to[name] = item
		}
	}
}

// objectHead is what an object is called by.
type objectHead struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
}

// blockItems are the entries of the sequence "items" in YAML's block style. Those of a list that is an item are indented as its fields are.
func blockItems(p piece) (items []piece) {
	from := -1   // where the last item begins
	inside := -2 // columns that entries are indented; -1 = the next entry says so; -2 = before the field
	fields := -1 // columns that the fields of the list are indented
	end := func(at int) {
		if from >= 0 {
			data := bytes.Clone(p.data[from:at])
			data[bytes.IndexByte(data, '-')] = ' '
			items = append(items, piece{p.line + bytes.Count(p.data[:from], []byte{'\n'}), data})
		}
		from = -1
	}
	next := 0
	for line := range bytes.Lines(p.data) {
		at := next
		next += len(line)
		text := bytes.TrimLeft(line, " ")
		column := len(line) - len(text)
		if text = bytes.TrimSpace(text); len(text) == 0 || text[0] == '#' {
			continue
		}
		if fields < 0 {
			fields = column
		}
		entry := text[0] == '-' && (len(text) == 1 || text[1] == ' ' || text[1] == '\t')
		switch {
		case inside == -2:
			if column == fields && bytes.Equal(bytes.TrimSpace(bytes.SplitN(text, []byte(" #"), 2)[0]), []byte("items:")) {
				inside = -1
			}
		case entry && (inside == -1 && column >= fields || column == inside):
			end(at)
			from, inside = at, column
		case column <= max(inside, fields): // the field has ended
			end(at)
			return items
		}
	}
	end(len(p.data))
	return items
}

// jsonItems are the elements of the field "items" of a JSON object.
func jsonItems(p piece) (items []piece) {
	in := json.NewDecoder(bytes.NewReader(p.data))
	if _, err := in.Token(); err != nil { // {
		return nil
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if name != "items" {
			if in.Decode(&value) != nil {
				return nil
			}
			continue
		}
		if bracket, err := in.Token(); err != nil || bracket != json.Delim('[') {
			return nil
		}
		for in.More() {
			if in.Decode(&value) != nil {
				return items
			}
			begin := int(in.InputOffset()) - len(value)
			items = append(items, piece{p.line + bytes.Count(p.data[:begin], []byte{'\n'}), bytes.Clone(value)})
		}
		return items
	}
	return nil
}
