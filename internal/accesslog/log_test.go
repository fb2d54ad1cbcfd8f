package accesslog

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"turnout/internal/wire/protocol"
	"turnout/internal/wire/tracecontext"
	"turnout/proxy"
)

func sample() *proxy.Record {
	return &proxy.Record{
		Start:  time.Date(2026, 3, 4, 5, 6, 7, 891011000, time.UTC),
		Client: netip.MustParseAddrPort("192.0.2.7:50123"), Secure: true,
		Method: []byte("GET"), Host: []byte("www.example.com"), Target: []byte("/a?b=c"), Minor: 1,
		Namespace: "shop", Route: "front", Server: "pod:a:svc:http:10.0.0.1:8080",
		Endpoint: netip.MustParseAddrPort("10.0.0.1:8080"),
		Status:   200, BytesIn: 5, BytesOut: 1234, Retries: 1, Causes: causes(proxy.FaultConnect),
		Connect: 250 * time.Microsecond, Response: 3 * time.Millisecond, Total: 4500 * time.Microsecond,
	}
}

// causes are those of a record.
func causes(all ...proxy.Fault) (of [len(proxy.Record{}.Causes)]proxy.Fault) {
	copy(of[:], all)
	return of
}

// full is a record with everything that a line can have.
func full() *proxy.Record {
	r := captured()
	r.Tunnel, r.Private, r.Detail, r.Queue, r.Target = true, true, "cl-te", time.Second, bytes.Repeat([]byte("x"), maxTarget+1)
	r.UserAgent, r.Referer = []byte(`Mozilla "5.0"`), []byte("https://www.example.com/")
	r.TLSVersion, r.CipherSuite, r.ServerName, r.Negotiated, r.Agreed = tls.VersionTLS13, tls.TLS_AES_128_GCM_SHA256, "www.example.com", true, protocol.HTTP2
	r.Answered, r.AnsweredIn, r.Retries, r.Causes = true, protocol.HTTP2, 2, causes(proxy.FaultConnect, proxy.FaultStale)
	r.HeadIn, r.HeadOut, r.Trace.Sampled = 100, 200, true
	return r
}

// TestWhatIsKnownOfBothSides: the session of the client, who it says it is, and what was spoken to the endpoint.
func TestWhatIsKnownOfBothSides(t *testing.T) {
	got := one(t, full())
	for _, want := range []string{
		`"tls":true,"tls_version":"TLS 1.3","tls_cipher":"TLS_AES_128_GCM_SHA256","sni":"www.example.com","alpn":"h2","method":"GET"`,
		`"proto":"HTTP/1.1","user_agent":"Mozilla \"5.0\"","referer":"https://www.example.com/","namespace"`,
		`"endpoint":"10.0.0.1:8080","upstream_proto":"HTTP/2.0","status"`,
		`"bytes_in":5,"bytes_out":1234,"total_bytes_in":105,"total_bytes_out":1434,"retries":2,"retry_causes":["connect","stale"],`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %swant %s", got, want)
		}
	}
	r := full()
	r.UserAgent, r.Target, r.AnsweredIn, r.AnsweredMinor = bytes.Repeat([]byte("u"), maxSender+1), nil, protocol.HTTP1, 0
	if got := one(t, r); !strings.Contains(got, `"truncated":true`) || strings.Contains(got, strings.Repeat("u", maxSender+1)) || !strings.Contains(got, `"upstream_proto":"HTTP/1.0"`) {
		t.Errorf("a long name: %s", got)
	}
}

// one logs r alone and returns its line.
func one(t *testing.T, r *proxy.Record) string {
	t.Helper()
	var out bytes.Buffer
	l, err := New(Config{Writer: &out})
	if err != nil {
		t.Fatal(err)
	}
	l.Log(r)
	l.Close()
	return out.String()
}

func TestLine(t *testing.T) {
	got := one(t, sample())
	want := `{"level":"info","ts":"2026-03-04T05:06:07.891011Z","msg":"request","client":"192.0.2.7:50123","tls":true,` +
		`"method":"GET","host":"www.example.com","target":"/a?b=c","proto":"HTTP/1.1","namespace":"shop","route":"front",` +
		`"server":"pod:a:svc:http:10.0.0.1:8080","endpoint":"10.0.0.1:8080","status":200,"reason":"ok","bytes_in":5,` +
		`"bytes_out":1234,"total_bytes_in":5,"total_bytes_out":1234,"retries":1,"retry_causes":["connect"],"connect_ms":0.250,"response_ms":3.000,"total_ms":4.500}` + "\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

func TestTraceIDs(t *testing.T) {
	r := sample()
	r.Trace = proxy.TraceRef{Trace: tracecontext.TraceID{0x4b, 15: 0x36}, Span: tracecontext.SpanID{0xf0, 7: 1}, Sampled: true}
	want := `"total_ms":4.500,"trace_id":"4b000000000000000000000000000036","span_id":"f000000000000001","trace_sampled":true}` + "\n"
	if got := one(t, r); !strings.HasSuffix(got, want) {
		t.Errorf("got  %swant %s", got, want)
	}
}

// captured is sample with something captured everywhere.
func captured() *proxy.Record {
	r := sample()
	r.Captures = &proxy.Captures{
		Request: []proxy.Capture{{Name: "host", Max: 9}, {Name: "missing", Max: 9}, {Name: "user-agent", Max: 9}}, Response: []proxy.Capture{{Name: "server", Max: 9}},
		Cookie: proxy.Capture{Name: "session", Max: 9},
	}
	r.Captured = [][]byte{[]byte("a.test"), nil, []byte(`cu"rl`), {}, []byte("session=1"), []byte("session=2")}
	return r
}

func TestCaptured(t *testing.T) {
	got := one(t, captured())
	want := `"total_ms":4.500,"request_headers":{"host":"a.test","user-agent":"cu\"rl"},"response_headers":{"server":""},` +
		`"request_cookie":"session=1","response_cookie":"session=2"}` + "\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("got  %swant %s", got, want)
	}
	r := captured()
	r.Captured[3], r.Captured[4], r.Captured[5] = nil, nil, nil
	if got := one(t, r); !strings.HasSuffix(got, `"response_headers":{}}`+"\n") {
		t.Errorf("without an answer: %s", got)
	}
}

func TestPhasesNotReachedAreLeftOut(t *testing.T) {
	r := sample()
	r.Connect, r.Response, r.Endpoint, r.Status, r.Method = -1, -1, netip.AddrPort{}, 0, nil
	var m map[string]any
	if err := json.Unmarshal([]byte(one(t, r)), &m); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"queue_ms", "connect_ms", "response_ms", "tunnel", "truncated"} {
		if _, ok := m[k]; ok {
			t.Errorf("line has %q", k)
		}
	}
	if m["endpoint"] != "" || m["status"] != 0.0 || m["proto"] != "" {
		t.Errorf("endpoint %v status %v proto %v", m["endpoint"], m["status"], m["proto"])
	}
}

func TestEscaping(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		if got := string(appendText(nil, []byte(in))); got != want {
			t.Errorf("%q: got %s want %s", in, got, want)
		}
	}
	f("plain", `"plain"`)
	f(`q"b\`, `"q\"b\\"`)
	f("a\r\n{\"level\":\"error\"}", `"a\r\n{\"level\":\"error\"}"`)
	f("tab\tnul\x00", `"tab\tnul\u0000"`)
	f("\x1b[31mred\x7f", `"\u001b[31mred\u007f"`)
	f("\u009b31m", `"\u009b31m"`) // C1 CSI, a terminal escape of one rune
	f("\u2028\u202e", `"\u2028\u202e"`)
	f("grün 日本", `"grün 日本"`)
	f("😀", `"😀"`)
	f("\U000e0001", `"\udb40\udc01"`)
	f("bad\xff\xc3", `"bad\ufffd\ufffd"`)
	f("\xed\xa0\x80", `"\ufffd\ufffd\ufffd"`) // a surrogate written as UTF-8
	f("\ufffd", `"`+"\ufffd"+`"`)
}

func FuzzEscaping(f *testing.F) {
	for _, s := range []string{"", "a", "\r\n", "\x1b[0m", "\xff", "\u2028", "😀\U000e0001", `"\`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		out := appendText(nil, in)
		for _, r := range string(out) {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q: line holds %U", in, r)
			}
		}
		var back string
		if err := json.Unmarshal(out, &back); err != nil {
			t.Fatalf("%q: %s: %v", in, out, err)
		}
		want := strings.Builder{}
		for rest := in; len(rest) > 0; {
			r, n := utf8.DecodeRune(rest)
			want.WriteRune(r)
			rest = rest[n:]
		}
		if back != want.String() {
			t.Fatalf("%q came back as %q", in, back)
		}
	})
}

func TestLongPiecesAreCut(t *testing.T) {
	r := sample()
	r.Target = bytes.Repeat([]byte("x"), maxTarget+1)
	var m map[string]any
	if err := json.Unmarshal([]byte(one(t, r)), &m); err != nil {
		t.Fatal(err)
	}
	if m["truncated"] != true || len(m["target"].(string)) != maxTarget {
		t.Errorf("truncated %v, %d bytes", m["truncated"], len(m["target"].(string)))
	}
}

// blocking is a writer that waits for a signal in its first Write.
type blocking struct {
	entered, release chan struct{}
	once             sync.Once
	bytes.Buffer
}

func (w *blocking) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.entered); <-w.release })
	return w.Buffer.Write(p)
}

func TestFullRingDropsAndNeverBlocks(t *testing.T) {
	w := &blocking{entered: make(chan struct{}), release: make(chan struct{})}
	l, err := New(Config{Writer: w, Slots: 4, Delay: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	l.Log(sample())
	<-w.entered // the writer hangs: only the ring is left
	for range 10 {
		l.Log(sample())
	}
	if got := l.Stats().Dropped; got != 6 {
		t.Errorf("dropped %d, want 6", got)
	}
	close(w.release)
	l.Close()
	l.Log(sample())
	if got := l.Stats(); got != (Stats{Written: 5, Dropped: 7}) {
		t.Errorf("stats %+v", got)
	}
	if n := bytes.Count(w.Bytes(), []byte("\n")); n != 5 {
		t.Errorf("%d lines", n)
	}
}

// TestLongRecordsAreBounded: while nobody reads the log, long targets hold no more than they may; other records are kept still, and what
// is written makes room.
func TestLongRecordsAreBounded(t *testing.T) {
	var q ring
	q.init(8192)
	long, short := sample(), sample()
	long.Target = bytes.Repeat([]byte("x"), 2*maxTarget)
	for round := range 2 {
		held, n := 0, 0
		for q.putRecord(long) {
			held, n = held+textOf(long), n+1
		}
		if held > mostLong || held+textOf(long) <= mostLong {
			t.Errorf("round %d: %d records with %d bytes are kept, of at most %d", round, n, held, mostLong)
		}
		if !q.putRecord(short) {
			t.Error("a short record is dropped")
		}
		for s := q.takeSlot(); s != nil; s = q.takeSlot() {
			q.release(s)
		}
		if left := q.long.Load(); left != 0 {
			t.Errorf("round %d: %d bytes count although nothing waits", round, left)
		}
	}
}

type failing struct{ err error }

func (w *failing) Write(p []byte) (int, error) { return 0, w.err }

func TestWriteErrorIsCountedAndToldOnce(t *testing.T) {
	var reported []error
	l, err := New(Config{Writer: &failing{errors.New("disk full")}, Delay: time.Microsecond, OnError: func(err error) { reported = append(reported, err) }})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		l.Log(sample())
	}
	l.Close()
	if s := l.Stats(); s.Failed != 100 || s.Written != 0 {
		t.Errorf("stats %+v", s)
	}
	if len(reported) != 1 || reported[0].Error() != "cannot write access log: disk full" {
		t.Errorf("reported %v", reported)
	}
}

func TestManyLoops(t *testing.T) {
	var out bytes.Buffer
	l, err := New(Config{Writer: &out, Slots: 1 << 14})
	if err != nil {
		t.Fatal(err)
	}
	var loops sync.WaitGroup
	for i := range 4 {
		loops.Go(func() {
			r := sample()
			for range 2000 {
				r.Host = []byte{byte('a' + i)}
				l.Log(r)
			}
		})
	}
	loops.Wait()
	l.Close()
	perLoop := map[string]int{}
	for line := range strings.Lines(out.String()) {
		var m struct{ Host string }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		perLoop[m.Host]++
	}
	for _, h := range []string{"a", "b", "c", "d"} {
		if perLoop[h] != 2000 {
			t.Errorf("loop %s: %d lines", h, perLoop[h])
		}
	}
}

func TestNoAllocationPerRecord(t *testing.T) {
	q := ring{}
	q.init(8)
	r := full()
	r.Target = r.Target[:100] // what is longer than usual is no memory's that is kept
	var line []byte
	o := output{l: &Log{}, ciphers: map[uint16]string{}}
	step := func() {
		q.putRecord(r)
		s := q.takeSlot()
		line = o.appendLine(line[:0], s)
		q.release(s)
	}
	for range 16 {
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%v allocations per record", n)
	}
}

func TestConfig(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("no writer: accepted")
	}
	if _, err := New(Config{Writer: &bytes.Buffer{}, Slots: -1}); err == nil {
		t.Error("negative slots: accepted")
	}
	l, err := New(Config{Writer: &bytes.Buffer{}, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	l.Log(sample())
	l.Close()
	l.Close()
}

// TestFieldsAreDocumented compares the fields of a line with docs/access-log.md.
func TestFieldsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/access-log.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	fields, _, _ := strings.Cut(string(doc), "## Reasons")
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(fields, -1) {
		documented[m[1]] = true
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(one(t, full())), &line); err != nil {
		t.Fatal(err)
	}
	line["sample"], line["help"] = 1, 1 // see TestFilter and TestHelp
	for k := range line {
		if !documented[k] {
			t.Errorf("field %q is not in docs/access-log.md", k)
		}
		delete(documented, k)
	}
	for k := range documented {
		t.Errorf("docs/access-log.md names %q, which no line has", k)
	}
	for _, reason := range proxy.Reasons() {
		if !bytes.Contains(doc, []byte("`"+reason.String()+"`")) {
			t.Errorf("reason %q is not in docs/access-log.md", reason)
		}
	}
}

func BenchmarkLog(b *testing.B) {
	l, err := New(Config{Writer: &bytes.Buffer{}, Slots: 1 << 16})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	r := sample()
	b.ReportAllocs()
	for b.Loop() {
		l.Log(r)
	}
}
