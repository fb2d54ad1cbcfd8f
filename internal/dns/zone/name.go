package zone

import (
	"fmt"
	"strings"
)

// Bounds of names (RFC 1035 section 2.3.4).
const (
	maxName   = 255 // bytes on the wire
	maxLabel  = 63
	maxLabels = maxName / 2 // of one byte each, without the root
)

// wireName is a name as it stands in messages, in lower case: labels with their lengths before them, the last of which is 0.
type wireName string

// pack reads a name such as a.example.com, with or without a dot at its end. Its letters are those of host names, and '_'; the first label
// may be '*'.
func pack(name string) (wireName, error) {
	text := strings.ToLower(strings.TrimSuffix(name, "."))
	b := make([]byte, 0, len(text)+2)
	for label := range strings.SplitSeq(text, ".") {
		if label == "" || len(label) > maxLabel {
			return "", fmt.Errorf("%q is no name: a label has 1 to %d letters", name, maxLabel)
		}
		if !isLabel(label) && (label != "*" || len(b) > 0) {
			return "", fmt.Errorf("%q is no name: labels have letters, digits, '-' and '_'", name)
		}
		b = append(append(b, byte(len(label))), label...)
	}
	if b = append(b, 0); len(b) > maxName {
		return "", fmt.Errorf("%q is no name: it is longer than %d bytes", name, maxName)
	}
	return wireName(b), nil
}

func isLabel(label string) bool {
	for i := range len(label) {
		switch c := label[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// ValidName returns why a text cannot be a name of a zone, nil if it can.
func ValidName(name string) error {
	_, err := pack(name)
	return err
}

// String is the name with a dot at its end.
func (n wireName) String() string {
	var b strings.Builder
	for len(n) > 1 {
		b.WriteString(string(n[1:1+n[0]]) + ".")
		n = n[1+n[0]:]
	}
	return b.String()
}

// parent is the name without its first label.
func (n wireName) parent() wireName { return n[1+n[0]:] }

// labels is the number of labels, without the root.
func (n wireName) labels() int {
	count := 0
	for ; len(n) > 1; n = n.parent() {
		count++
	}
	return count
}

// within reports whether n is origin or stands below it.
func (n wireName) within(origin wireName) bool {
	for len(n) > len(origin) {
		n = n.parent()
	}
	return n == origin
}

// isWildcard reports whether the first label is '*'.
func (n wireName) isWildcard() bool { return strings.HasPrefix(string(n), "\x01*") }
