package protocol

import (
	"slices"
	"testing"
)

// TestAgreed: what was offered and selected is what is spoken, and HTTP/1.1 is where nothing was agreed on.
func TestAgreed(t *testing.T) {
	for name, want := range map[string]Protocol{"h2": HTTP2, "http/1.1": HTTP1, "": HTTP1, "http/1.0": HTTP1} {
		if got := Agreed(name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
	for _, p := range []Protocol{HTTP1, HTTP2} {
		if got := Agreed(p.String()); got != p {
			t.Errorf("%v is %v in ALPN", p, got)
		}
	}
}

// TestNames: in the order of preference; without protocols there is no offer at all.
func TestNames(t *testing.T) {
	if got := Names([]Protocol{HTTP2, HTTP1}); !slices.Equal(got, []string{"h2", "http/1.1"}) {
		t.Errorf("%q", got)
	}
	if got := Names(nil); got != nil {
		t.Errorf("%q without protocols", got)
	}
	if got := TCP.String() + " " + Protocol(9).String(); got != "tcp unknown" {
		t.Error(got)
	}
}
