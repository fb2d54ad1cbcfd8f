package cors

import (
	"strings"
	"testing"

	"turnout/internal/wire/field"
)

// TestLongOriginsAreNotCompared checks that a value longer than any origin is refused without
// comparing it with the patterns.
func TestLongOriginsAreNotCompared(t *testing.T) {
	r, err := New(Config{Origins: []string{"https://*.a.test"}})
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]bool{200: true, maxOrigin: false, 20 << 10: false} {
		fields := r.Answer(nil, []byte("https://"+strings.Repeat("x", n)+".a.test"))
		if got := field.Index(fields, "access-control-allow-origin") >= 0; got != want {
			t.Errorf("%d bytes: allowed %t, want %t", n, got, want)
		}
	}
}
