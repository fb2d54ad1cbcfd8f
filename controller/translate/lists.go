package translate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// What bounds an annotation that is a list: its words, and its bytes.
const (
	maxWords = 64
	maxList  = 4096
)

// words returns the words of an annotation, separated as those of an allow-list, that are what they should be, each once. The others are left out and
// noted, and so is what is too long.
func (a *annotations) words(key, what string, valid func(string) bool) (list []string) {
	value := a.values[key]
	if len(value) > maxList {
		a.notes = append(a.notes, fmt.Sprintf("annotation %s: is longer than %d bytes; nothing of it is used", key, maxList))
		return nil
	}
	noted := 0
	for _, word := range strings.FieldsFunc(value, separates) {
		switch {
		case slices.Contains(list, word):
		case !valid(word):
			if noted++; noted <= maxNoted {
				a.notes = append(a.notes, fmt.Sprintf("annotation %s: %q is not %s; it is left out", key, Shown(word), what))
			}
		case len(list) == maxWords:
			a.notes = append(a.notes, fmt.Sprintf("annotation %s: has more than %d words; the others are left out", key, maxWords))
			return list
		default:
			list = append(list, word)
		}
	}
	if noted > maxNoted {
		a.notes = append(a.notes, fmt.Sprintf("annotation %s: %d more are left out", key, noted-maxNoted))
	}
	return list
}

// number returns the whole number of an annotation, which is what, and otherwise if there is none within the bounds; instead is said of that.
func (a *annotations) number(key string, least, most int, what string, otherwise int, instead string) int {
	value, ok := a.values[key]
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		a.invalid(key, value, fmt.Sprintf("is not %s from %d to %d", what, least, most), instead)
		return otherwise
	}
	return n
}

// without notes those of keys that are there although the one that they depend on is not.
func (a *annotations) without(key string, keys ...string) {
	for _, k := range keys {
		if _, ok := a.values[k]; ok && k != key {
			a.notes = append(a.notes, fmt.Sprintf("annotation %s: has no effect without %s", k, key))
		}
	}
}
