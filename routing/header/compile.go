package header

import (
	"errors"
	"fmt"
	"strings"

	"turnout/internal/wire/field"
)

// Compile compiles a list in its order. What cannot be compiled is left out: errs has
// one error for each such action, which names it. The result is nil when nothing is
// left to do.
func Compile(side Side, list []Action) (a *Actions, errs []error) {
	compiled := &Actions{}
	for _, action := range list {
		o, err := compile(side, action)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		compiled.ops = append(compiled.ops, o)
	}
	if len(compiled.ops) == 0 {
		return nil, errs
	}
	return compiled, errs
}

func compile(side Side, a Action) (op, error) {
	if err := field.CheckName(a.use(side), a.Name); err != nil {
		return op{}, err
	}
	name := strings.ToLower(a.Name)
	if a.Delete {
		return op{name: []byte(name), remove: true}, nil
	}
	parts, err := parse(side, a.Value)
	if err != nil {
		return op{}, fmt.Errorf("header %s: cannot use value %.200q: %w", a.Name, a.Value, err)
	}
	return op{name: []byte(name), add: a.Add, parts: parts}, nil
}

// use returns how an action changes its field.
func (a *Action) use(side Side) field.Use {
	switch {
	case side == Response:
		return field.ChangeResponse
	case a.Delete:
		return field.DeleteRequest
	case a.Add:
		return field.AddRequest
	}
	return field.SetRequest
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

var (
	errEmpty       = errors.New("it is empty")
	errLong        = fmt.Errorf("it is longer than %d bytes", MaxValue)
	errControl     = errors.New("it has a control character")
	errPercent     = errors.New(`a "%" that stands for itself is written "%%"`)
	errFlags       = errors.New("flags are {Q}, {X} and {E} with + or -, separated by commas")
	errUnended     = errors.New(`an expression ends with "]"`)
	errHeaderFetch = errors.New("the header of an expression is named with letters, digits and -")
)

// ErrCostly is an error of Compile: a value would ask for more work with each message than an action may. Who leaves such an
// action out changes what a route was meant to do, so a route with one is better refused.
var ErrCostly = errors.New("it costs too much")

// parse reads a value.
func parse(side Side, value string) ([]part, error) {
	switch {
	case value == "":
		return nil, errEmpty
	case len(value) > MaxValue:
		return nil, errLong
	}
	var parts []part
	var text []byte
	expressions := 0
	for i := 0; i < len(value); {
		c := value[i]
		switch {
		case c < ' ' || c == 0x7f:
			return nil, errControl
		case c != '%':
			text = append(text, c)
			i++
			continue
		case strings.HasPrefix(value[i:], "%%"):
			text = append(text, '%')
			i += 2
			continue
		}
		p, n, err := expression(side, value[i:])
		if err != nil {
			return nil, err
		}
		if expressions++; expressions > MaxExpressions {
			return nil, fmt.Errorf("%w: a value has at most %d expressions", ErrCostly, MaxExpressions)
		}
		if len(text) > 0 {
			parts, text = append(parts, part{text: text}), nil
		}
		parts = append(parts, p)
		i += n
	}
	if len(text) > 0 {
		parts = append(parts, part{text: text})
	}
	return parts, nil
}

// expression reads the expression that s begins with and returns its length.
func expression(side Side, s string) (p part, n int, err error) {
	rest := s[1:]
	if strings.HasPrefix(rest, "{") {
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return p, 0, errFlags
		}
		for flag := range strings.SplitSeq(rest[1:end], ",") {
			on := !strings.HasPrefix(flag, "-")
			switch strings.TrimLeft(flag, "+-") {
			case "E":
				p.escape = on
			case "Q", "X": // nothing that a header value shows
			default:
				return p, 0, errFlags
			}
			if len(flag) > 2 {
				return p, 0, errFlags
			}
		}
		rest = rest[end+1:]
	}
	if !strings.HasPrefix(rest, "[") {
		return p, 0, errPercent
	}
	inner, after, ok := strings.Cut(rest[1:], "]")
	if !ok {
		return p, 0, errUnended
	}
	words := strings.Split(inner, ",")
	if err := p.source(side, words[0]); err != nil {
		return p, 0, err
	}
	for _, w := range words[1:] {
		switch w {
		case "lower":
			p.steps = append(p.steps, stepLower)
		case "base64":
			p.steps = append(p.steps, stepBase64)
		default:
			return p, 0, fmt.Errorf("unknown converter %q; there are lower and base64", w)
		}
	}
	if len(p.steps) > MaxConverters {
		return p, 0, fmt.Errorf("%w: an expression has at most %d converters, not %d", ErrCostly, MaxConverters, len(p.steps))
	}
	return p, len(s) - len(after), nil
}

func (p *part) source(side Side, word string) error {
	if word == "ssl_c_der" {
		p.fetch = fetchCertificate
		return nil
	}
	prefix := "req.hdr("
	if side == Response {
		prefix = "res.hdr("
	}
	name, ok := strings.CutPrefix(word, prefix)
	if name, ok2 := strings.CutSuffix(name, ")"); ok && ok2 {
		for i := range len(name) {
			if !isAlphanumeric(name[i]) && name[i] != '-' {
				return errHeaderFetch
			}
		}
		if name == "" {
			return errHeaderFetch
		}
		p.fetch, p.name = fetchHeader, []byte(strings.ToLower(name))
		return nil
	}
	return fmt.Errorf("unknown source %q; there are %sNAME) and ssl_c_der", word, prefix)
}
