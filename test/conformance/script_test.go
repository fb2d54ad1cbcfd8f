package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// step is one line of what happens.
type step struct {
	verb string
	data []byte
	wait time.Duration
}

// reply is what the pod does with one request.
type reply struct {
	data          []byte
	ends          string // fin, rst or empty
	early, silent bool
}

// expectation is one line of what is expected.
type expectation struct {
	line       int
	key, value string
}

// conversation is one case.
type conversation struct {
	name    string
	steps   []step
	replies []reply
	expects []expectation
}

// one reports that a case has no second connection and lets no time pass, so that it
// can be had over real sockets too.
func (c *conversation) one() bool {
	for _, s := range c.steps {
		if s.verb != "send" && s.verb != "eof" {
			return false
		}
	}
	for _, r := range c.replies {
		if r.early || r.silent || r.ends == "rst" {
			return false
		}
	}
	return true
}

var fileName = regexp.MustCompile(`^(rfc[0-9]+)-([0-9.]+)-[a-z0-9-]+\.txt$|^proxy-v[12]-[a-z0-9-]+\.txt$`)

// readConversations reads every file of testdata.
func readConversations(t testing.TB) map[string][]*conversation {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	all := map[string][]*conversation{}
	for _, path := range files {
		name := filepath.Base(path)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := fileName.FindStringSubmatch(name)
		switch {
		case m == nil:
			t.Errorf("%s is not named after a clause", name)
		case m[1] != "" && !strings.HasPrefix(string(text), fmt.Sprintf("# %s %s section %s: ", "RFC", m[1][3:], m[2])):
			t.Errorf("%s does not begin with the clause of its name", name)
		}
		if all[name], err = parseFile(string(text)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return all
}

func parseFile(text string) ([]*conversation, error) {
	var all []*conversation
	var c *conversation
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "#"), strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, "== "):
			c = &conversation{name: line[3:]}
			all = append(all, c)
		case c == nil:
			return nil, fmt.Errorf("line %d stands before the first case", i+1)
		default:
			if err := c.parse(line, i+1); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
		}
	}
	for _, c := range all {
		if len(c.expects) == 0 {
			return nil, fmt.Errorf("case %q expects nothing", c.name)
		}
	}
	return all, nil
}

func (c *conversation) parse(line string, number int) error {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case ">", ">>", "<", "<<", "pod>":
		data, err := unescape(rest)
		if err != nil {
			return err
		}
		if !strings.HasSuffix(verb, ">>") && verb != "<<" {
			data = append(data, '\r', '\n')
		}
		switch verb[0] {
		case '<':
			r := c.reply()
			r.data = append(r.data, data...)
		case 'p':
			c.steps = append(c.steps, step{verb: "pod", data: data})
		default:
			c.send(data)
		}
	case "next":
		c.replies = append(c.replies, reply{})
	case "fin", "rst":
		c.reply().ends = verb
	case "early":
		c.reply().early = true
	case "silent":
		c.reply().silent = true
	case "wait":
		d, err := time.ParseDuration(rest)
		c.steps = append(c.steps, step{verb: verb, wait: d})
		return err
	case "forwarding":
		if _, ok := policies[rest]; !ok {
			return fmt.Errorf("%q is no forwarding policy", rest)
		}
		c.steps = append(c.steps, step{verb: verb, data: []byte(rest)})
	case "HEADERS", "DATA", "RST_STREAM", "WINDOW_UPDATE", "PING", "GOAWAY", "resets":
		c.steps = append(c.steps, step{verb: "frame", data: []byte(line)})
	case "over":
		if _, ok := transports[rest]; !ok {
			return fmt.Errorf("%q is nothing that clients speak", rest)
		}
		c.steps = append(c.steps, step{verb: verb, data: []byte(rest)})
	case "eof", "reset", "connect", "port", "drain":
		c.steps = append(c.steps, step{verb: verb, data: []byte(rest)})
	default:
		key, value, ok := strings.Cut(line, ": ")
		if !ok {
			return fmt.Errorf("%q is no line of a conversation", line)
		}
		c.expects = append(c.expects, expectation{number, key, value})
	}
	return nil
}

// send joins what is sent without anything in between.
func (c *conversation) send(data []byte) {
	if n := len(c.steps); n > 0 && c.steps[n-1].verb == "send" {
		c.steps[n-1].data = append(c.steps[n-1].data, data...)
		return
	}
	c.steps = append(c.steps, step{verb: "send", data: data})
}

func (c *conversation) reply() *reply {
	if len(c.replies) == 0 {
		c.replies = append(c.replies, reply{})
	}
	return &c.replies[len(c.replies)-1]
}

var repeated = regexp.MustCompile(`\{([0-9]+)\*([^}]*)\}`)

// unescape turns text into bytes.
func unescape(text string) ([]byte, error) {
	text = repeated.ReplaceAllStringFunc(text, func(s string) string {
		m := repeated.FindStringSubmatch(s)
		n, _ := strconv.Atoi(m[1])
		return strings.Repeat(m[2], n)
	})
	var b []byte
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b = append(b, text[i])
			continue
		}
		i++
		if i == len(text) {
			return nil, fmt.Errorf("a backslash ends %q", text)
		}
		switch text[i] {
		case 'r':
			b = append(b, '\r')
		case 'n':
			b = append(b, '\n')
		case 't':
			b = append(b, '\t')
		case '0':
			b = append(b, 0)
		case '\\':
			b = append(b, '\\')
		case 'x':
			if i+2 >= len(text) {
				return nil, fmt.Errorf("bad escape in %q", text)
			}
			n, err := strconv.ParseUint(text[i+1:i+3], 16, 8)
			if err != nil {
				return nil, err
			}
			b = append(b, byte(n))
			i += 2
		default:
			return nil, fmt.Errorf("unknown escape \\%c", text[i])
		}
	}
	return b, nil
}
