package sidebyside

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// conversation is one case.
type conversation struct {
	name, host string
	script     []string // lines but for what comes of it

	send             []byte   // HTTP/1.1
	frames           []string // HTTP/2; nil = none
	answer           []byte
	fin, early, eof  bool
	answers          int
	tunnel           []byte
	port             string // plain, proxy or short
	redirect, podH2  bool
	resets           uint32 // the code by which a pod of HTTP/2 resets requests; 0 = it answers
	differs          []string
	turnout, haproxy outcome
}

// outcome is what a router made of a conversation.
type outcome struct{ pod, client []string }

func (o outcome) equal(p outcome) bool {
	return slices.Equal(o.pod, p.pod) && slices.Equal(o.client, p.client)
}

func (o outcome) String() string {
	var b strings.Builder
	o.lines(&b, "")
	return b.String()
}

func (o outcome) lines(b *strings.Builder, prefix string) {
	for _, line := range o.pod {
		fmt.Fprintf(b, "%spod %s\n", prefix, line)
	}
	for _, line := range o.client {
		fmt.Fprintf(b, "%sclient %s\n", prefix, line)
	}
}

// file is one of testdata.
type file struct {
	path, head    string
	conversations []*conversation
}

func readFiles(t *testing.T) (files []*file, all []*conversation) {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split("\n"+string(text), "\n== ")
		f := &file{path: path, head: strings.TrimPrefix(parts[0], "\n")}
		for _, part := range parts[1:] {
			name, lines, _ := strings.Cut(part, "\n")
			c := &conversation{name: name, host: fmt.Sprintf("c%d.test", len(all)), answers: 1, port: "plain"}
			for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
				if err := c.parse(line); err != nil {
					t.Fatalf("%s: %s: %v", path, name, err)
				}
			}
			if c.haproxy.pod == nil && c.haproxy.client == nil {
				c.haproxy = c.turnout
			}
			if c.haproxy.pod == nil {
				c.haproxy.pod = c.turnout.pod
			}
			if c.haproxy.client == nil {
				c.haproxy.client = c.turnout.client
			}
			f.conversations = append(f.conversations, c)
			all = append(all, c)
		}
		files = append(files, f)
	}
	return files, all
}

func (c *conversation) parse(line string) (err error) {
	verb, rest, _ := strings.Cut(line, " ")
	into := func(to *[]byte, end string) {
		var text []byte
		text, err = c.unescape(rest)
		*to = append(append(*to, text...), end...)
	}
	switch verb {
	case "pod", "client":
		if verb == "pod" && strings.HasPrefix(rest, "h2") {
			c.podH2 = true
			if code, ok := strings.CutPrefix(rest, "h2 RST_STREAM "); ok {
				n, bad := strconv.ParseUint(code, 10, 32)
				c.resets, err = uint32(n), bad
			}
			break
		}
		c.turnout.add(verb, rest)
		return nil
	case "haproxy":
		verb, rest, _ = strings.Cut(rest, " ")
		c.haproxy.add(verb, rest)
		return nil
	case "differs":
		c.differs = append(c.differs, rest)
	case ">":
		into(&c.send, "\r\n")
	case ">>":
		into(&c.send, "")
	case "<":
		into(&c.answer, "\r\n")
	case "<<":
		if into(&c.answer, ""); c.answer == nil {
			c.answer = []byte{}
		}
	case "tunnel":
		into(&c.tunnel, "")
	case "fin":
		c.fin = true
	case "early":
		c.early = true
	case "eof":
		c.eof = true
	case "redirect":
		c.redirect = true
	case "port":
		c.port = rest
	case "answers":
		c.answers, err = strconv.Atoi(rest)
	case "over":
		c.frames = []string{}
	case "HEADERS", "DATA":
		c.frames = append(c.frames, strings.ReplaceAll(line, "$H", c.host))
	default:
		return fmt.Errorf("%q is no line of a conversation", line)
	}
	c.script = append(c.script, line)
	return err
}

func (o *outcome) add(side, line string) {
	to := &o.client
	if side == "pod" {
		to = &o.pod
	}
	if line == nothing {
		*to = []string{}
		return
	}
	*to = append(*to, line)
}

// nothing is written where Turnout's outcome has lines and HAProxy's has none.
const nothing = "-"

// write writes a file anew, with what was observed.
func (f *file) write(t *testing.T) {
	t.Helper()
	b := &strings.Builder{}
	b.WriteString(strings.TrimRight(f.head, "\n") + "\n")
	for _, c := range f.conversations {
		fmt.Fprintf(b, "\n== %s\n", c.name)
		for _, line := range c.script {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		c.turnout.lines(b, "")
		there := c.haproxy
		if len(there.pod) == 0 {
			there.pod = []string{nothing}
		}
		if slices.Equal(c.haproxy.pod, c.turnout.pod) {
			there.pod = nil
		}
		if slices.Equal(there.client, c.turnout.client) {
			there.client = nil
		}
		there.lines(b, "haproxy ")
	}
	if err := os.WriteFile(f.path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

var repeated = regexp.MustCompile(`\{([0-9]+)\*([^}]*)\}`)

// unescape turns text into bytes.
func (c *conversation) unescape(text string) ([]byte, error) {
	text = strings.ReplaceAll(text, "$H", c.host)
	text = repeated.ReplaceAllStringFunc(text, func(s string) string {
		m := repeated.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[1])
		return strings.Repeat(m[2], n)
	})
	out, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	return []byte(out), err
}
