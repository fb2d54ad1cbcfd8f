package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"turnout/internal/option"
)

// FuzzOptions: whatever a variable or a flag says, it is taken, or an error or a warning shows its name and value; the two are
// read the same; and what is ignored leaves everything as it is without it.
func FuzzOptions(f *testing.F) {
	table := settings(&options{})
	values := []string{"", "true", "30s", "0", "8080", "a,b:10", "127.0.0.1:80", "%[req.hdr(x)]", "x:y:Set"}
	for i := range table {
		f.Add(uint8(i), values[i%len(values)])
		f.Add(uint8(i), table[i].Def)
	}
	f.Fuzz(func(t *testing.T, i uint8, value string) {
		s := table[int(i)%len(table)]
		if strings.ContainsRune(value, 0) {
			return // no environment and no command line can hold it
		}
		shown := strconv.Quote(value)
		_, _, flagErr := parseOptions([]string{"--" + s.Flag + "=" + value}, func(string) (string, bool) { return "", false })
		var usage option.UsageError
		if flagErr != nil && (!errors.As(flagErr, &usage) || strings.Contains(flagErr.Error(), "BUG")) {
			t.Fatalf("--%s %q: %v", s.Flag, value, flagErr)
		}
		if s.Env == "" || value == "" {
			return
		}
		env := option.Environment(func(name string) (string, bool) {
			if name == s.Env {
				return value, true
			}
			return "", false
		})
		_, warnings, err := parseOptions(nil, env)
		warned := slices.ContainsFunc(warnings, func(w string) bool { return strings.HasPrefix(w, s.Env+"="+shown+" is ignored") })
		switch invalid := s.Set(value) != nil; {
		case err != nil && !errors.As(err, &usage):
			t.Fatalf("%s=%q: %v", s.Env, value, err)
		case invalid && s.EnvStops != (err != nil), invalid && !s.EnvStops && !warned, !invalid && warned, invalid && flagErr == nil:
			t.Fatalf("%s=%q: invalid %v, error %v, warnings %q; --%s: %v", s.Env, value, invalid, err, warnings, s.Flag, flagErr)
		}
	})
}
