// Package nearest finds which of some known words an unknown one was most likely meant to be.
package nearest

import "strings"

// Longest is the length in bytes above which words are not compared.
const Longest = 64

// Of returns the first of the known words that is nearest to word, whatever the case of letters; "" when none is near: a third of the
// letters may be wrong, and at least one.
func Of(word string, known []string) (best string) {
	least := max(len(word)/3, 1) + 1
	for _, k := range known {
		if d := Distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			least, best = d, k
		}
	}
	return best
}

// DidYouMean is what an error about word says after its own text: a suggestion, or nothing.
func DidYouMean(prefix, word string, known []string) string {
	if near := Of(word, known); near != "" {
		return "; did you mean " + prefix + near + "?"
	}
	return ""
}

// Distance is the least number of bytes to insert, delete or replace, or of neighbours to swap, that makes b of a. Words that are longer
// than Longest are that far from each other.
func Distance(a, b string) int {
	var before, last, row [Longest + 1]int
	if len(a) > Longest || len(b) > Longest {
		return Longest
	}
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
