package http1

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Messages collected by others, when they lie beside the repository. They are not
// part of it: TURNOUT_CORPORA names another folder.

type probe struct {
	ID       string `json:"id"`
	Raw      []byte `json:"raw"`
	Expected string `json:"expected"`
	Error    string `json:"error"`
}

// corpus reads one file of messages; ok is false when it is not there.
func corpus(t *testing.T, name string) (probes []probe, ok bool) {
	t.Helper()
	dir := os.Getenv("TURNOUT_CORPORA")
	if dir == "" {
		// The package lies three folders below the root of the repository.
		dir = filepath.Join("..", "..", "..", "..", "shared", "corpora")
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		t.Logf("no %s in %s: nothing of it is checked", name, dir)
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &probes); err != nil {
		t.Fatal(err)
	}
	return probes, true
}

// converse reads raw as one connection and tells what became of it: a plus for
// each whole message, then why it ended: "" at the end of the bytes, "close" when
// the last message ended the connection before them, "head" or "body" in the
// middle of a message, or the reason of a refusal.
func converse(t *testing.T, raw []byte) string {
	verdict := ""
	for {
		raw = raw[SkipEmptyLines(raw):]
		if len(raw) == 0 {
			return verdict
		}
		n, err := FindHeadEnd(raw, 0, Limits{})
		if err != nil {
			return verdict + reasonOf(t, err)
		}
		if n == 0 {
			return verdict + "head"
		}
		var r Request
		if err := ParseRequest(raw[:n], &r, Limits{}); err != nil {
			return verdict + reasonOf(t, err)
		}
		if err := requestDiff(&r); err != nil {
			t.Error(err)
		}
		raw = raw[n:]
		var end string
		if raw, end = skipBody(t, &r, raw); end != "" {
			return verdict + end
		}
		verdict += "+"
		if !r.KeepAlive && len(raw) > 0 {
			return verdict + "close"
		}
	}
}

func skipBody(t *testing.T, r *Request, raw []byte) (rest []byte, end string) {
	switch r.Body {
	case BodyLength:
		if int64(len(raw)) < r.ContentLength {
			return nil, "body"
		}
		return raw[r.ContentLength:], ""
	case BodyChunked:
		var d ChunkDecoder
		_, left, done, err := decode(&d, raw, len(raw)+1)
		if err != nil {
			return nil, reasonOf(t, err)
		}
		if !done {
			return nil, "body"
		}
		return raw[len(raw)-left:], ""
	}
	return raw, ""
}

// acceptedProbes are the probes that may be, or according to their author should
// be, answered 400 and that this codec reads to their end. Every other probe that
// mentions 400 is refused.
const acceptedProbes = "" +
	// Correct messages; what to do with them is the pipeline's business.
	"COMP-CHUNKED-EXTENSION COMP-GET-WITH-CL-BODY COOK-EMPTY COOK-MALFORMED COMP-DUPLICATE-CT COMP-HTTP10-NO-HOST " +
	"COMP-LEADING-CRLF COMP-ABSOLUTE-FORM COMP-METHOD-CASE COMP-METHOD-CONNECT COMP-TRACE-WITH-BODY " +
	"COMP-UNKNOWN-METHOD MAL-URL-PERCENT-CRLF MAL-URL-PERCENT-NULL SMUG-EXPECT-100-CL SMUG-HEAD-CL-BODY " +
	"SMUG-OPTIONS-CL-BODY SMUG-TRANSFER_ENCODING " +
	// Blanks and zeros around a number (RFC 9110 sections 5.5 and 8.6).
	"MAL-CL-TAB-BEFORE-VALUE SMUG-CL-DOUBLE-ZERO SMUG-CL-EXTRA-LEADING-SP SMUG-CL-LEADING-ZEROS SMUG-CL-TRAILING-SPACE " +
	// Dropped from the trailers (RFC 9110 section 6.5.1).
	"SMUG-TRAILER-AUTH SMUG-TRAILER-CL SMUG-TRAILER-CONTENT-TYPE SMUG-TRAILER-HOST SMUG-TRAILER-TE " +
	// Merged, as the reference does.
	"COMP-DUPLICATE-HOST-SAME " +
	// Two pipelined requests, each routed and policed.
	"SMUG-CL0-BODY-POISON SMUG-EXPECT-100-CL-DESYNC SMUG-GET-CL-BODY-DESYNC SMUG-OPTIONS-CL-BODY-DESYNC"

func TestHttp11Probe(t *testing.T) {
	probes, ok := corpus(t, "http11probe.json")
	if !ok {
		return
	}
	accepted := map[string]bool{}
	for _, id := range strings.Fields(acceptedProbes) {
		accepted[id] = true
	}
	for _, p := range probes {
		raw := strings.ReplaceAll(string(p.Raw), "{H}", "probe.example:8080")
		verdict := converse(t, []byte(raw))
		whole := strings.HasPrefix(verdict, "+")
		cut := verdict == "head" || verdict == "body"
		want := !strings.Contains(p.Expected, "400") && !strings.Contains(p.Expected, "417") &&
			!strings.HasPrefix(p.Expected, "Reject") || accepted[p.ID] || strings.HasPrefix(p.ID, "NORM-UNDERSCORE-")
		if whole != want || cut && !strings.Contains(p.Expected, "timeout") {
			t.Errorf("%s: %q, expected %s", p.ID, verdict, p.Expected)
		}
	}
}

// llhttpVerdicts is how many messages of llhttp's own tests end how, given a Host.
var llhttpVerdicts = map[string]int{
	"+": 56, "++": 1, "+close": 4, // whole messages
	"head": 6, "body": 6, "+head": 4, "++body": 1, // the message goes on
	"+no-colon": 1, "no-colon": 1, "bare-cr": 7, "bare-lf": 3, "field-name": 3, "field-value": 2,
	"space-before-colon": 2, "request-line": 1, "target-char": 2, "target-form": 2, "userinfo": 1, "version": 7,
	"content-length": 3, "cl-te": 3, "transfer-encoding": 3, "transfer-encoding-repeated": 2,
	"transfer-coding-unknown": 1, "chunk-ext": 2, "chunk-size": 4,
}

func TestLlhttp(t *testing.T) {
	probes, ok := corpus(t, "llhttp.json")
	if !ok {
		return
	}
	got := map[string]int{}
	for _, p := range probes {
		verdict := converse(t, []byte(withHost(string(p.Raw))))
		got[verdict]++
	}
	if diff := cmp.Diff(llhttpVerdicts, got); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}

// withHost gives every request of raw that lacks one a Host, and takes the
// fragments away that hide what some requests are about.
func withHost(raw string) string {
	raw = strings.TrimLeft(strings.ReplaceAll(raw, "#hey", ""), "\r\n")
	if strings.Contains(strings.ToLower(raw), "\r\nhost:") {
		return raw
	}
	host := "h"
	if _, after, ok := strings.Cut(raw, " http://"); ok {
		host = after[:strings.IndexAny(after, " ?/")]
	}
	for _, version := range []string{" HTTP/1.1\r\n", " HTTP/1.0\r\n"} {
		raw = strings.ReplaceAll(raw, version, version+"Host: "+host+"\r\n")
	}
	return raw
}
