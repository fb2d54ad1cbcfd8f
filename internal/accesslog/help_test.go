package accesslog

import (
	"bytes"
	"strings"
	"testing"

	"turnout/proxy"
)

// TestHelp: a line of a request that failed links to its reason.
func TestHelp(t *testing.T) {
	var out bytes.Buffer
	l, err := New(Config{Writer: &out, Help: `https://wiki.example.com/t?a="b"`})
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []proxy.Reason{proxy.ReasonNoRoute, proxy.ReasonOK, proxy.ReasonRedirect, proxy.ReasonTunnelClosed} {
		r := sample()
		r.Reason = reason
		l.Log(r)
	}
	l.Close()
	lines := strings.SplitAfter(out.String(), "\n")
	if want := `"reason":"no-route","help":"https://wiki.example.com/t?a=\"b\"#no-route","bytes_in"`; !strings.Contains(lines[0], want) {
		t.Errorf("got %swant %s", lines[0], want)
	}
	for _, line := range lines[1:] {
		if strings.Contains(line, "help") {
			t.Errorf("nothing failed: %s", line)
		}
	}
	for text, ok := range map[string]bool{
		"": true, "https://wiki.example.com/t": true, "http://a/": true, "https://a#x": false, "https://a#": false, "ftp://a/": false, "/t": false, "https://u:p@a/": false, "https://%": false,
	} {
		if _, err := ParseHelp(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
