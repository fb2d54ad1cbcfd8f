package http1

import (
	"fmt"
	"strings"
)

// NewAdjust makes an AdjustName that spells the given names as they are given, and
// leaves others alone. It fails for what is no field name (RFC 9110 section 5.1); nil
// without any name.
func NewAdjust(names []string) (AdjustName, error) {
	if len(names) == 0 {
		return nil, nil
	}
	spelling := make(map[string][]byte, len(names))
	for _, n := range names {
		if !isToken([]byte(n)) {
			return nil, fmt.Errorf("invalid HTTP header name: %s", n)
		}
		spelling[strings.ToLower(n)] = []byte(n)
	}
	return func(name []byte) []byte {
		if spelled, ok := spelling[string(name)]; ok {
			return spelled
		}
		return name
	}, nil
}

// ParseAdjust is NewAdjust of names separated by commas; "" = nil.
func ParseAdjust(s string) (AdjustName, error) {
	if s == "" {
		return nil, nil
	}
	names := strings.Split(s, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return NewAdjust(names)
}
