package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// FuzzOptions: whatever a variable or a flag says, it is taken, or an error or a warning shows its name and value; the two are
// read the same; and what is ignored leaves everything as it is without it.
func FuzzOptions(f *testing.F) {
	table := settings(&options{})
	values := []string{"", "true", "30s", "0", "8080", "a,b:10", "127.0.0.1:80", "%[req.hdr(x)]", "x:y:Set"}
	for i := range table {
		f.Add(uint8(i), values[i%len(values)])
		f.Add(uint8(i), table[i].def)
	}
	f.Fuzz(func(t *testing.T, i uint8, value string) {
		s := table[int(i)%len(table)]
		if strings.ContainsRune(value, 0) {
			return // no environment and no command line can hold it
		}
		shown := strconv.Quote(value)
		_, _, flagErr := parseOptions([]string{"--" + s.flag + "=" + value}, func(string) (string, bool) { return "", false })
		var usage usageError
		if flagErr != nil && (!errors.As(flagErr, &usage) || strings.Contains(flagErr.Error(), "BUG")) {
			t.Fatalf("--%s %q: %v", s.flag, value, flagErr)
		}
		if s.env == "" || value == "" {
			return
		}
		env := environment(func(name string) (string, bool) {
			if name == s.env {
				return value, true
			}
			return "", false
		})
		_, warnings, err := parseOptions(nil, env)
		warned := slices.ContainsFunc(warnings, func(w string) bool { return strings.HasPrefix(w, s.env+"="+shown+" is ignored") })
		switch invalid := s.set(value) != nil; {
		case err != nil && !errors.As(err, &usage):
			t.Fatalf("%s=%q: %v", s.env, value, err)
		case invalid && s.envStops != (err != nil), invalid && !s.envStops && !warned, !invalid && warned, invalid && flagErr == nil:
			t.Fatalf("%s=%q: invalid %v, error %v, warnings %q; --%s: %v", s.env, value, invalid, err, warnings, s.flag, flagErr)
		}
	})
}
