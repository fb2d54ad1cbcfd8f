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
		{"edge, 1 active service: random", Choice{Active: 1}, Random},
		{"edge, 2 active services: roundrobin", Choice{Active: 2}, RoundRobin},
		{"edge, 2 (one without endpoints) active services: roundrobin", Choice{Active: 2}, RoundRobin}, // one of them without endpoints
		{"edge, 2 active services, default leastconn, annotation source: source", Choice{Active: 2, Default: "leastconn", Annotation: "source"}, Source},
		{"edge, 1 active service, default bogus: random", Choice{Active: 1, Default: "bogus"}, Random},
		{"edge, 1 active service, annotation Source: random", Choice{Active: 1, Annotation: "Source"}, Random},
		{"passthrough, 1 active service: source", Choice{Passthrough: true, Active: 1}, SourceConsistent},
		{"passthrough, 1 active service, default leastconn, TCP default roundrobin: roundrobin", Choice{Passthrough: true, Active: 1, Default: "leastconn", TCPDefault: "roundrobin"}, RoundRobin},
		{"passthrough, 2 active services, default leastconn, TCP default source: roundrobin", Choice{Passthrough: true, Active: 2, Default: "leastconn", TCPDefault: "source"}, RoundRobin},
		{"default", Choice{Active: 1, Default: "leastconn", TCPDefault: "roundrobin"}, LeastConn},
		{"passthrough falls back to the general default", Choice{Passthrough: true, Active: 1, Default: "leastconn", TCPDefault: "bogus"}, LeastConn},
		{"passthrough with the annotation", Choice{Passthrough: true, Active: 2, Annotation: "source"}, SourceConsistent},
	} {
		if got := row.in.Algorithm(); got != row.want {
			t.Errorf("%s: %v, want %v", row.id, got, row.want)
		}
	}
}
