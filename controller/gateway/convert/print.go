package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// bare is an object as a manifest has it: without what only an API server writes.
func bare(o Object) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("cannot write %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}
	delete(out, "status")
	if meta, ok := out["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	return out, nil
}

// PrintYAML writes the objects as documents of one stream.
func (r *Result) PrintYAML(w io.Writer) error {
	var b bytes.Buffer
	for i, o := range r.Objects {
		plain, err := bare(o)
		if err != nil {
			return err
		}
		text, err := yaml.Marshal(plain)
		if err != nil {
			return fmt.Errorf("cannot write %s/%s: %w", o.GetNamespace(), o.GetName(), err)
		}
		if i > 0 {
			b.WriteString("---\n")
		}
		b.Write(text)
	}
	_, err := b.WriteTo(w)
	return err //nolint:wrapcheck // of the writer that the caller gave
}

// PrintJSON writes the objects as one List.
func (r *Result) PrintJSON(w io.Writer) error {
	items := make([]map[string]any, 0, len(r.Objects))
	for _, o := range r.Objects {
		plain, err := bare(o)
		if err != nil {
			return err
		}
		items = append(items, plain)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}) //nolint:wrapcheck // as above
}
