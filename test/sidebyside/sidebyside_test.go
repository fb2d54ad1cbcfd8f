package sidebyside

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"turnout/internal/testkit"
)

var update = flag.Bool("update", false, "write down what is")

// TestSideBySide: what is written down of each conversation is so, with Turnout and with HAProxy, and where they differ the documents say so.
func TestSideBySide(t *testing.T) {
	files, all := readFiles(t)
	documented, err := os.ReadFile("../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	probed := testkit.Answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	sides := []*side{{name: "turnout", of: func(c *conversation) *outcome { return &c.turnout }, start: startTurnout}}
	if binary := findHAProxy(t); binary != "" {
		sides = append(sides, &side{name: "haproxy", of: func(c *conversation) *outcome { return &c.haproxy },
			start: func(t *testing.T, all []*conversation, pods []*pod, probed string) ports {
				return startHAProxy(t, binary, all, pods, probed)
			}})
	}
	for _, s := range sides {
		for _, c := range all {
			s.pods = append(s.pods, startPod(t, c))
		}
		s.ports = s.start(t, all, s.pods, probed)
	}
	t.Run("conversations", func(t *testing.T) {
		for i, c := range all {
			for _, s := range sides {
				t.Run(c.name+"/"+s.name, func(t *testing.T) {
					t.Parallel()
					s.run(t, i, c)
				})
			}
		}
	})
	if *update {
		for _, f := range files {
			f.write(t)
		}
	}
	for _, c := range all {
		c.checkDocumented(t, string(documented))
	}
}

// side is one of the routers.
type side struct {
	name  string
	of    func(*conversation) *outcome
	start func(t *testing.T, all []*conversation, pods []*pod, probed string) ports
	pods  []*pod
	ports ports
}

func (s *side) run(t *testing.T, i int, c *conversation) {
	client := c.talk(t, s.ports[c.port])
	got, want := outcome{pod: s.pods[i].requests(), client: client}, s.of(c)
	if *update {
		*want = got
		return
	}
	if !got.equal(*want) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// checkDocumented compares what is written down with what the documents say.
func (c *conversation) checkDocumented(t *testing.T, documents string) {
	t.Helper()
	if same := c.turnout.equal(c.haproxy); same != (len(c.differs) == 0) {
		t.Errorf("%s: the same is %v, and it names %q of docs/differences.md", c.name, same, c.differs)
	}
	for _, row := range c.differs {
		if !strings.Contains(documents, "\n| "+row) {
			t.Errorf("%s: docs/differences.md has no row %q", c.name, row)
		}
	}
}

// TestNamesAreUnique: a failure leads to one conversation.
func TestNamesAreUnique(t *testing.T) {
	_, all := readFiles(t)
	if len(all) < 80 {
		t.Errorf("%d conversations", len(all))
	}
	var names []string
	for _, c := range all {
		names = append(names, c.name)
	}
	slices.Sort(names)
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			t.Errorf("%q is there twice", names[i])
		}
	}
}
