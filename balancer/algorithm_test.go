package balancer

import "testing"

func TestParseAlgorithm(t *testing.T) {
	for word, want := range map[string]Algorithm{"random": Random, "roundrobin": RoundRobin, "leastconn": LeastConn, "source": Source} {
		if a, ok := ParseAlgorithm(word); !ok || a != want || a.String() != word {
			t.Errorf("ParseAlgorithm(%q) = %v, %t", word, a, ok)
		}
	}
	for _, word := range []string{"", "Source", "RANDOM", "static-rr", "uri", "source-consistent", " random"} {
		if _, ok := ParseAlgorithm(word); ok {
			t.Errorf("ParseAlgorithm(%q) is taken", word)
		}
	}
}

func TestChoice(t *testing.T) {
	for _, row := range []struct {
		id   string
		in   Choice
		want Algorithm
	}{
		{"C692", Choice{Active: 1}, Random},
		{"C693", Choice{Active: 2}, RoundRobin},
		{"C694", Choice{Active: 2}, RoundRobin}, // one of them without endpoints
		{"C696", Choice{Active: 2, Default: "leastconn", Annotation: "source"}, Source},
		{"C697", Choice{Active: 1, Default: "bogus"}, Random},
		{"C698", Choice{Active: 1, Annotation: "Source"}, Random},
		{"C699", Choice{Passthrough: true, Active: 1}, SourceConsistent},
		{"C701", Choice{Passthrough: true, Active: 1, Default: "leastconn", TCPDefault: "roundrobin"}, RoundRobin},
		{"C702", Choice{Passthrough: true, Active: 2, Default: "leastconn", TCPDefault: "source"}, RoundRobin},
		{"default", Choice{Active: 1, Default: "leastconn", TCPDefault: "roundrobin"}, LeastConn},
		{"passthrough falls back to the general default", Choice{Passthrough: true, Active: 1, Default: "leastconn", TCPDefault: "bogus"}, LeastConn},
		{"passthrough with the annotation", Choice{Passthrough: true, Active: 2, Annotation: "source"}, SourceConsistent},
	} {
		if got := row.in.Algorithm(); got != row.want {
			t.Errorf("%s: %v, want %v", row.id, got, row.want)
		}
	}
}
