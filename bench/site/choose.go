package site

import (
	"fmt"
	"strings"
)

// Choose returns those of all that a list names, in the order of all. Names are separated by sep; one that ends in * means all that
// begin so, and "all" means all.
func Choose[V any](list, sep string, all []V, name func(V) string) (chosen []V, err error) {
	known := make([]string, len(all))
	wanted := make([]bool, len(all))
	for i, v := range all {
		known[i] = name(v)
	}
	for want := range strings.SplitSeq(list, sep) {
		want = strings.TrimSpace(want)
		prefix, isPrefix := strings.CutSuffix(want, "*")
		found := false
		for i := range all {
			if want == "all" || known[i] == want || isPrefix && strings.HasPrefix(known[i], prefix) {
				wanted[i], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("cannot find %q; allowed: all, or some of %s", want, strings.Join(known, sep+" "))
		}
	}
	for i, v := range all {
		if wanted[i] {
			chosen = append(chosen, v)
		}
	}
	return chosen, nil
}
