// Package logformat reads the format language of HAProxy's log lines and unique ids
// (its configuration manual, section 8.2.6). What the variables mean is up to the user of the items.
package logformat

import (
	"errors"
	"strings"
)

// Item is text, or one variable with the flags that hold for it.
type Item struct {
	Text   string // what to write when Name is empty; of a variable how it was written, such as "%[bogus]"
	Name   string // of the variable, such as "ci", "src" or "req.hdr"
	Sample bool   // it was written %[NAME], with an argument and converters if there are any

	Arg        string   // between the parentheses after Name
	Converters []string // each with its own arguments, such as "lower" or "field(1,x)"

	Hex    bool // {+X}
	Quote  bool // {+Q}
	Escape bool // {+E}
}

// Parse cuts a format into items. %{...}o is applied to the items after it and is none
// itself, "%%" is a percent sign in a text, runs of blanks become one. An error says which
// rule of the language the format breaks; a name that nobody knows breaks none.
func Parse(format string) ([]Item, error) {
	var items []Item
	var standing Item // what %{...}o has set
	for s := format; s != ""; {
		item, rest, err := nextItem(s, &standing)
		if err != nil {
			return nil, err
		}
		if item.Name != "" || item.Text != "" {
			items = append(items, item)
		}
		s = rest
	}
	return items, nil
}

// nextItem cuts one item off a format.
func nextItem(s string, standing *Item) (item Item, rest string, err error) {
	if s[0] != '%' || strings.HasPrefix(s, "%%") {
		return text(s)
	}
	item, rest = *standing, s[1:]
	if strings.HasPrefix(rest, "{") {
		flags, after, ok := strings.Cut(rest[1:], "}")
		if !ok || !item.flags(flags) {
			return item, "", errors.New("flags are {Q}, {X} and {E} with + or -, separated by commas")
		}
		rest = after
	}
	if strings.HasPrefix(rest, "[") {
		inner, after, ok := strings.Cut(rest[1:], "]")
		if !ok {
			return item, "", errors.New(`"[" without "]"`)
		}
		if item.sample(inner); item.Name == "" {
			return item, "", errors.New(`"%[" without the name of a sample`)
		}
		return item, after, nil
	}
	n := 0
	for n < len(rest) && 'a' <= rest[n]|0x20 && rest[n]|0x20 <= 'z' {
		n++
	}
	switch item.Name = rest[:n]; item.Name {
	case "":
		return item, "", errors.New(`"%" without a name; the sign itself is written "%%"`)
	case "o":
		item.Name = ""
		*standing = item
		return Item{}, strings.TrimLeft(rest[n:], " "), nil
	}
	item.Text = "%" + item.Name
	return item, rest[n:], nil
}

// text cuts the text up to the next variable off.
func text(s string) (item Item, rest string, err error) {
	var b []byte
	for s != "" {
		if s[0] == '%' {
			if !strings.HasPrefix(s, "%%") {
				break
			}
			s = s[1:]
		}
		c := s[0]
		s = s[1:]
		if c < ' ' || c == 0x7f {
			return item, "", errors.New("it has a control character")
		}
		if c == ' ' && len(b) > 0 && b[len(b)-1] == ' ' {
			continue
		}
		b = append(b, c)
	}
	return Item{Text: string(b)}, s, nil
}

func (i *Item) flags(list string) bool {
	for flag := range strings.SplitSeq(list, ",") {
		on := !strings.HasPrefix(flag, "-")
		if len(flag) > 2 {
			return false
		}
		switch strings.TrimLeft(flag, "+-") {
		case "X":
			i.Hex = on
		case "Q":
			i.Quote = on
		case "E":
			i.Escape = on
		default:
			return false
		}
	}
	return true
}

// sample takes NAME(ARG),CONVERTER,... apart; commas between parentheses separate nothing.
func (i *Item) sample(inner string) {
	var words []string
	depth, from := 0, 0
	for k := range len(inner) {
		switch inner[k] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				words = append(words, inner[from:k])
				from = k + 1
			}
		}
	}
	words = append(words, inner[from:])
	i.Sample, i.Text, i.Name, i.Converters = true, "%["+inner+"]", words[0], words[1:]
	if name, arg, ok := strings.Cut(words[0], "("); ok && strings.HasSuffix(arg, ")") {
		i.Name, i.Arg = name, strings.TrimSuffix(arg, ")")
	}
}

// Case says what the converters lower and upper make of letters, +1 for upper, -1 for lower, 0 for neither. It is false
// if there is another converter among them.
func (i *Item) Case() (to int, ok bool) {
	for _, c := range i.Converters {
		switch c {
		case "lower":
			to = -1
		case "upper":
			to = 1
		default:
			return 0, false
		}
	}
	return to, true
}
