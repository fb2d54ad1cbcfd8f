// Package rewrite compiles and applies what becomes of a request's path and host: the part of the path that a rule matched, or all of it, is
// replaced by another one, and so may be the host. URL is that as plain data.
//
// The replacement of rewrite-target is written in a small language that is left over from the
// configuration file the annotation was once pasted into: "#" begins a comment, quotes
// disappear, "\\" is a backslash, "\1" (written "\\1") stands for what follows the
// route's path. Sanitize has the rules.
package rewrite

import (
	"strings"

	"turnout/internal/wire/field"
	"turnout/internal/work"
)

// Rule is a compiled rewrite-target or URL. It is immutable and may be shared.
type Rule struct {
	host     []byte // instead of the request's; nil = that stays
	keeps    bool   // the path stays
	path     string // what is cut off, literally
	slash    bool   // and one slash after it
	segments bool   // and only where a segment ends; what is left is never empty
	parts    []part
}

// part is text or a reference to what was matched.
type part struct {
	text []byte
	ref  int8 // refText, refWhole, refRest, or refNone for a group that does not exist
}

const (
	refText int8 = iota - 1
	refWhole
	refRest
	refNone
)

// MaxTarget bounds a rewrite-target in bytes: each two of them can stand for the whole path of a request.
const MaxTarget = 4096

// IsTarget reports whether s may be a rewrite-target: it begins with a slash, has no
// newline, and is no longer than MaxTarget.
func IsTarget(s string) bool {
	return strings.HasPrefix(s, "/") && !strings.Contains(s, "\n") && len(s) <= MaxTarget
}

// Compile makes the rule of a route with a path and a target that is IsTarget.
func Compile(path, target string) *Rule {
	r := &Rule{path: strings.NewReplacer("\r", "", "\n", "").Replace(path), slash: target == "/"}
	r.parts = split(Sanitize(target))
	return r
}

// quote stands for a single quote that is kept, while Sanitize removes the others.
const quote = '\x00'

// Sanitize turns a target into the replacement text, in the order of the HAProxy router: a comment ends it; quotes that no backslash escapes go, others stay; odd
// runs of "%" are doubled (a pair is one "%"); a lone backslash goes and pairs become
// one. Unless there was a comment, a reference to the rest of the path is appended.
func Sanitize(target string) string {
	target = strings.ReplaceAll(target, string(rune(quote)), "")
	text, comment := target, false
	if i := unescaped(target, '#'); i >= 0 {
		text, comment = target[:i], true
	}
	text = singleQuotes(doubleQuotes(text))
	text = runs(text, '%', func(n int) int {
		if n%2 == 1 {
			return 2 * n
		}
		return n
	})
	text = runs(text, '\\', func(n int) int {
		if n == 1 {
			return 0
		}
		return (n + 1) / 2
	})
	text = strings.ReplaceAll(text, string(rune(quote)), "'")
	if !comment {
		text += `\1`
	}
	return text
}

// unescaped is the index of the first c before which stands an even number of
// backslashes, -1 without one.
func unescaped(s string, c byte) int {
	backslashes := 0
	for i := range len(s) {
		switch {
		case s[i] == '\\':
			backslashes++
			continue
		case s[i] == c && backslashes%2 == 0:
			return i
		}
		backslashes = 0
	}
	return -1
}

// doubleQuotes removes quotes before which stands an even number of backslashes, other quotes left out of account.
func doubleQuotes(s string) string {
	var b strings.Builder
	backslashes := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' && backslashes%2 == 0:
			continue
		case c == '\\':
			backslashes++
		default:
			backslashes = 0
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// singleQuotes removes quotes; one that is escaped stays, and its backslash goes.
func singleQuotes(s string) string {
	var b []byte
	backslashes := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\':
			backslashes++
			b = append(b, c)
			continue
		case c == '\'' && backslashes%2 == 1:
			b = append(b[:len(b)-1], quote)
		case c != '\'':
			b = append(b, c)
		}
		backslashes = 0
	}
	return string(b)
}

// runs replaces each run of n times c by length(n) times c.
func runs(s string, c byte, length func(n int) int) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		n := 0
		for i+n < len(s) && s[i+n] == c {
			n++
		}
		if n == 0 {
			b.WriteByte(s[i])
			i++
			continue
		}
		b.WriteString(strings.Repeat(string(rune(c)), length(n)))
		i += n
	}
	return b.String()
}

// split cuts a sanitized text into literals and references. "%%" is one "%"; a
// backslash before a digit is a reference, before anything else it only goes away.
func split(s string) []part {
	var parts []part
	var text []byte
	flush := func() {
		if len(text) > 0 {
			parts, text = append(parts, part{text: escape(text), ref: refText}), nil
		}
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%' && i+1 < len(s) && s[i+1] == '%':
			text = append(text, c)
			i++
		case c == '\\' && i+1 < len(s):
			i++
			if d := s[i]; d >= '0' && d <= '9' {
				flush()
				parts = append(parts, part{ref: min(int8(d-'0'), refNone)})
				break
			}
			text = append(text, s[i])
		default:
			text = append(text, c)
		}
	}
	flush()
	return parts
}

// escape percent-encodes what cannot stand in a request target (RFC 9112 section 3.2):
// blanks, controls, "#" and what is not ASCII. The HAProxy router sends some of
// them as they are, which no server understands.
func escape(text []byte) []byte {
	const hexDigits = "0123456789ABCDEF"
	var b []byte
	for _, c := range text {
		if c <= ' ' || c >= 0x7f || c == '#' {
			b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
			continue
		}
		b = append(b, c)
	}
	return b
}

// Apply returns the path to send for a request's path, made in the arena. A path that
// does not begin with the route's stays as it is, as does the "*" of OPTIONS. False: the
// path would grow by more than most bytes, or the work of the request is used up.
func (r *Rule) Apply(path []byte, arena *field.Arena, most int, left *work.Account) ([]byte, bool) {
	if r.keeps || len(path) == 0 || path[0] != '/' || len(path) < len(r.path) || string(path[:len(r.path)]) != r.path {
		return path, true
	}
	rest := path[len(r.path):]
	if r.segments {
		if len(rest) > 0 && rest[0] != '/' {
			return path, true
		}
		if len(rest) == 0 && len(r.parts) == 1 {
			rest = root
		}
	}
	if r.slash && len(rest) > 0 && rest[0] == '/' {
		rest = rest[1:]
	}
	if !left.Spend(1 + len(r.parts)) {
		return path, false
	}
	need := 0
	for i := range r.parts {
		if need += len(r.parts[i].value(path, rest)); need > len(path)+most {
			return path, false
		}
	}
	if !left.Spend(work.Copied(need)) {
		return path, false
	}
	b := arena.Begin(need)
	for i := range r.parts {
		b = append(b, r.parts[i].value(path, rest)...)
	}
	return arena.End(b), true
}

// Example returns the path to send for a short one, for explanations.
func (r *Rule) Example(path string) string {
	var arena field.Arena
	left := work.Of(work.Request)
	made, _ := r.Apply([]byte(path), &arena, MaxTarget, &left)
	return string(made)
}

// root is the path that has nothing in it.
var root = []byte("/")

func (p *part) value(path, rest []byte) []byte {
	switch p.ref {
	case refWhole:
		return path
	case refRest:
		return rest
	}
	return p.text // nil for a group that does not exist
}
