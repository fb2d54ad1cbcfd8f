package header

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"turnout/internal/wire/field"
)

// ErrNoList is the error of ParseList for an empty text.
var ErrNoList = errors.New("encoded header string not present")

// ParseList reads the list of actions of the whole router:
//
//	list = item *( "," item )
//	item = NAME ":" VALUE ":Set" | NAME ":Delete"
//
// Name, value and action are percent-encoded as in a query, "+" is a blank. Items keep
// their order. A value that stands before Delete means nothing; a Set without one sets
// an empty value, which Compile refuses.
func ParseList(text string) ([]Action, error) {
	if text == "" {
		return nil, ErrNoList
	}
	var list []Action
	for item := range strings.SplitSeq(text, ",") {
		a, err := parseItem(item)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, nil
}

func parseItem(item string) (Action, error) {
	parts := strings.Split(item, ":")
	if len(parts) != 2 && len(parts) != 3 {
		return Action{}, fmt.Errorf("invalid HTTP header input specification: %s", item)
	}
	for i, p := range parts {
		decoded, err := url.QueryUnescape(p)
		if err != nil {
			return Action{}, fmt.Errorf("failed to decode percent encoding: %s", p)
		}
		parts[i] = decoded
	}
	a := Action{Name: parts[0]}
	if !field.IsToken(a.Name) {
		return Action{}, fmt.Errorf("invalid HTTP header name: %s", a.Name)
	}
	if len(parts) == 3 {
		a.Value = parts[1]
	}
	switch action := parts[len(parts)-1]; action {
	case "Set":
	case "Delete":
		a.Value, a.Delete = "", true
	default:
		return Action{}, fmt.Errorf("invalid action: %s", action)
	}
	return a, nil
}

// ParseActions reads a list of actions for one side and compiles it; "" = nil. The error says all that is wrong.
func ParseActions(side Side) func(text string) (*Actions, error) {
	return func(text string) (*Actions, error) {
		if text == "" {
			return nil, nil
		}
		list, err := ParseList(text)
		if err != nil {
			return nil, err
		}
		actions, errs := Compile(side, list)
		return actions, errors.Join(errs...)
	}
}

// ParseName reads a field name (RFC 9110 section 5.1); "" = none.
func ParseName(s string) (string, error) {
	if s != "" && !field.IsToken(s) {
		return "", fmt.Errorf("invalid HTTP header name: %s", s)
	}
	return s, nil
}

// NameOf is s with a - in the place of each byte that no field name, and so no token, has.
func NameOf(s string) string {
	name := []byte(s)
	for i, c := range name {
		if !field.IsToken(string(rune(c))) {
			name[i] = '-'
		}
	}
	return string(name)
}
