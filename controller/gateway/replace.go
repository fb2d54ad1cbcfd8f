package gateway

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"turnout/controller/source"
)

// replaceStatus notes which statuses of one kind differ between was and next, and has equal ones be one object.
func replaceStatus[T any](r *Result, kind string, was, next map[source.Key]*T) {
	for key, status := range next {
		if before := was[key]; before != nil && equality.Semantic.DeepEqual(before, status) {
			next[key] = before
			continue
		}
		r.Changes.Status = append(r.Changes.Status, Ref{Kind: kind, Key: key})
	}
	for key := range was {
		if next[key] == nil {
			r.Changes.Status = append(r.Changes.Status, Ref{Kind: kind, Key: key})
		}
	}
}
