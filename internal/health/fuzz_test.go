package health

import (
	"regexp"
	"testing"

	"turnout/balancer"
	"turnout/internal/reactor/memnet"
	"turnout/internal/wire/http1"
)

// passing is how an answer must begin that passes: any number of answers that announce another one, and a status from 200 to 399.
var passing = regexp.MustCompile(`(?s)\A(HTTP/1\.[0-9] 1[0-9][0-9]( [^\r]*)?\r\n(.*\r\n)?\r\n)*HTTP/1\.[0-9] [23][0-9][0-9]( [^\r]*)?\r\n(.*\r\n)?\r\n`)

// FuzzAnswer: whatever a pod says before it closes, the check ends, with the same result however the bytes come, and passes
// answers alone that look like one.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.0 302\r\n\r\n", "HTTP/1.1 404 Not Found\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "HTTP/1.1 200 OK\n\n", "HTTP/2.0 200 OK\r\n\r\n", "\r\nHTTP/1.1 200 OK\r\n\r\n", "SSH-2.0-x\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		var first Result
		for split := range 3 {
			var got []Result
			r := asking(t, func(c *Config) { c.Fall, c.Rise, c.Answer = 1, 1, http1.Limits{HeadBytes: 1000} })
			r.k.cfg.Changed = func(_ *balancer.Check, _ bool, why Result) { got = append(got, why) }
			r.net.Split(split)
			check := r.pod(1, func(p *memnet.Peer) {
				p.Write(answer)
				p.Close()
			})
			r.k.Check(check, second)
			for _, up := range []bool{false, true} { // a success is a change first, and a failure then
				if len(got) == 0 {
					r.k.checks.Get(check).up = up
					r.net.Advance(3 * second)
				}
			}
			if len(got) != 1 {
				t.Fatalf("%q by %d: %v", answer, split, got)
			}
			if split == 0 {
				first = got[0]
			}
			if got[0] != first {
				t.Fatalf("%q by %d: %v, and %v as a whole", answer, split, got[0], first)
			}
			if got[0].Passed() && !passing.Match(answer) {
				t.Fatalf("%q passes", answer)
			}
			r.net.Close()
		}
	})
}
