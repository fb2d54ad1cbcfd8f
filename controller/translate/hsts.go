package translate

import "strings"

// isHSTS reports whether s may be sent as Strict-Transport-Security (RFC 6797 section
// 6.1), in the stricter grammar of the annotation: any number of includeSubDomains or
// preload each followed by ";", then max-age, then any number of ";" and one of them.
// Case does not matter; blanks are allowed around "=" and ";" only.
func isHSTS(s string) bool {
	p := hstsParser{rest: s}
	if len(s) > maxFieldAnnotation {
		return false
	}
	for {
		before := p.rest
		if !p.flag() {
			break
		}
		if !p.sign(';') {
			p.rest = before
			break
		}
	}
	if !p.word("max-age") || !p.sign('=') || !p.seconds() {
		return false
	}
	for p.rest != "" {
		if !p.sign(';') || !p.flag() {
			return false
		}
	}
	return true
}

// hstsParser eats a text from its start. Its methods report whether they found what
// they look for.
type hstsParser struct{ rest string }

func (p *hstsParser) word(w string) bool {
	if len(p.rest) < len(w) || !strings.EqualFold(p.rest[:len(w)], w) {
		return false
	}
	p.rest = p.rest[len(w):]
	return true
}

func (p *hstsParser) flag() bool { return p.word("includeSubDomains") || p.word("preload") }

// sign eats c and the blanks around it.
func (p *hstsParser) sign(c byte) bool {
	rest := strings.TrimLeft(p.rest, " \t")
	if rest == "" || rest[0] != c {
		return false
	}
	p.rest = strings.TrimLeft(rest[1:], " \t")
	return true
}

// seconds eats digits, which may be in double quotes.
func (p *hstsParser) seconds() bool {
	rest, quoted := strings.CutPrefix(p.rest, `"`)
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	rest = rest[digits:]
	if quoted {
		if !strings.HasPrefix(rest, `"`) {
			return false
		}
		rest = rest[1:]
	}
	p.rest = rest
	return digits > 0
}
