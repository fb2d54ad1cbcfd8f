package proxy

import (
	"fmt"
	"strconv"
	"strings"

	"turnout/internal/wire/field"
)

// ParseCaptures reads NAME:LENGTH items, separated by commas.
func ParseCaptures(s string) ([]Capture, error) {
	var list []Capture
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, length, ok := strings.Cut(item, ":")
		if !ok || strings.Contains(length, ":") {
			return nil, fmt.Errorf("invalid HTTP header capture specification: %s", item)
		}
		if !field.IsToken(name) {
			return nil, fmt.Errorf("invalid HTTP header name: %s", name)
		}
		most, err := parseCaptureLength(length)
		if err != nil {
			return nil, err
		}
		list = append(list, NewCapture(name, most))
	}
	return list, nil
}

// ParseCookieCapture reads NAME:LENGTH, a prefix of cookie names, or NAME=:LENGTH.
func ParseCookieCapture(s string) (Capture, error) {
	if s == "" {
		return Capture{}, nil
	}
	name, length, ok := strings.Cut(s, ":")
	if !ok || strings.Contains(length, ":") {
		return Capture{}, fmt.Errorf("invalid HTTP cookie capture specification: %s", s)
	}
	if bare := strings.TrimSuffix(name, "="); !field.IsToken(bare) {
		return Capture{}, fmt.Errorf("invalid HTTP cookie name: %s", bare)
	}
	most, err := parseCaptureLength(length)
	return Capture{Name: name, Max: most}, err
}

func parseCaptureLength(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 4096 {
		return 0, fmt.Errorf("invalid capture length %q; allowed: 1 to 4096", s)
	}
	return n, nil
}
