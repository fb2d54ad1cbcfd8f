package kubectl

import (
	"strings"
	"testing"

	"turnout/controller/source/cluster"
	"turnout/internal/option"
)

// TestTokenIsNotShown: the settings of a router are on its page.
func TestTokenIsNotShown(t *testing.T) {
	p, err := option.ParseSaid(Settings(new(cluster.Reach)), nil, []string{"--token", "PLANTED", "--proxy-url", "http://ann:PLANTED@proxy:3128"}, func(string) (string, bool) { return "", false }, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range p.Origins {
		if strings.Contains(o.Value, "PLANTED") {
			t.Errorf("--%s is shown as %q", o.Flag, o.Value)
		}
	}
}
