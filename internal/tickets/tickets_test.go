package tickets

import (
	"errors"
	"strings"
	"testing"

	"turnout/controller/source/cluster"
	"turnout/internal/option"
	"turnout/internal/problem"
)

func nobody(string) (string, bool) { return "", false }

// TestFollow: a folder and a Secret exclude each other, and a Secret needs a cluster.
func TestFollow(t *testing.T) {
	for name, c := range map[string]struct {
		args    []string
		cluster bool
		want    string
		usage   bool
	}{
		"none":                       {},
		"a folder that is missing":   {args: []string{"--tls-ticket-keys-dir", "/does/not/exist"}, want: "TURNOUT_TLS_TICKET_KEYS_DIR"},
		"both":                       {args: []string{"--tls-ticket-keys-dir", "/tmp", "--tls-ticket-keys-secret", "a/b"}, cluster: true, want: "exclude each other", usage: true},
		"a Secret without a cluster": {args: []string{"--tls-ticket-keys-secret", "a/b"}, want: "needs a cluster", usage: true},
		"a Secret":                   {args: []string{"--tls-ticket-keys-secret", "a/b"}, cluster: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := new(Options)
			if _, _, err := option.Parse(o.Table(), nil, c.args, nobody); err != nil {
				t.Fatal(err)
			}
			from := cluster.Config{Problems: problem.NewList()}
			from.Reach.Server = "https://api.test"
			followed, err := o.Follow(c.cluster, from)
			switch {
			case c.want == "" && (err != nil || followed == nil):
				t.Errorf("%v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			}
			if usage := new(option.UsageError); errors.As(err, usage) != c.usage {
				t.Errorf("an error of usage: %v", !c.usage)
			}
		})
	}
}

// TestBadValues: each names its option and what is allowed.
func TestBadValues(t *testing.T) {
	for _, args := range [][]string{{"--tls-ticket-keys-secret", "a"}, {"--tls-ticket-keys-secret", "a/b/c"}, {"--tls-ticket-rotation", "9s"}, {"--tls-ticket-rotation", "soon"}} {
		_, _, err := option.Parse(new(Options).Table(), nil, args, nobody)
		if err == nil || !strings.Contains(err.Error(), args[0]) || !strings.Contains(err.Error(), "allowed: ") {
			t.Errorf("%q: %v", args, err)
		}
	}
}
