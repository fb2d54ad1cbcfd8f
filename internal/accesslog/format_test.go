package accesslog

import (
	"bytes"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"turnout/internal/wire/protocol"
	"turnout/proxy"
)

// served is sample as the pipeline fills it for HTTPLog.
func served() *proxy.Record {
	r := sample()
	r.Frontend, r.ServerName, r.Backend, r.Local = "fe_sni", "www.example.com", "be_edge_http", netip.MustParseAddrPort("[2001:db8::1]:8443")
	r.TLSVersion, r.CipherSuite = 0x0304, 0x1301
	r.Sticky, r.Inserted, r.HeadOut, r.HeadIn = proxy.StickyMissing, true, 100, 50
	r.Start = r.Start.In(time.Local)
	return r
}

// write writes one record in a format, of a machine called box.
func write(t *testing.T, format string, r *proxy.Record) (line string, warnings []string) {
	t.Helper()
	f, warnings, err := NewFormat(FormatConfig{
		Format: format, Captures: r.Captures, PID: 0x790E, Host: "box", Connections: func() (plain, secure int64) { return 3, 4 },
		CipherName: func(suite uint16) string { return map[uint16]string{0x1301: "TLS_AES_128_GCM_SHA256"}[suite] },
	})
	if err != nil {
		t.Fatalf("%q: %v", format, err)
	}
	f.begin()
	return string(f.Append(nil, r)), warnings
}

// TestHTTPLog has the rows of the reference's table of events.
func TestHTTPLog(t *testing.T) {
	when := served().Start.Format("02/Jan/2006:15:04:05.000")
	for _, tc := range []struct {
		what, want string
		change     func(*proxy.Record)
	}{
		{"ok, first visit", "fe_sni~ be_edge_http:shop:front/pod:a:svc:http:10.0.0.1:8080 0/0/0/3/4 200 1334 - - --NI 7/4/0/0/1 0/0 \"GET /a?b=c HTTP/1.1\"", nil},
		{"ok, valid cookie", "fe_no_sni~ be_edge_http:shop:front/pod:a:svc:http:10.0.0.1:8080 0/0/0/3/4 200 1334 - - --VN 7/4/0/0/1 0/0 \"GET /a?b=c HTTP/1.1\"", func(r *proxy.Record) {
			r.Sticky, r.Inserted, r.Frontend = proxy.StickyUsed, false, "fe_no_sni"
		}},
		{"unknown host", `public openshift_default/<NOSRV> 0/-1/-1/-1/0 503 1334 - - SC-- 7/3/0/0/0 0/0 "GET /a?b=c HTTP/1.1"`, func(r *proxy.Record) {
			away(r, 503, proxy.ReasonNoRoute)
		}},
		{"redirect", `public public/<NOSRV> 0/-1/-1/-1/0 302 1334 - - LR-- 7/3/0/0/0 0/0 "GET /a?b=c HTTP/1.1"`, func(r *proxy.Record) {
			away(r, 302, proxy.ReasonRedirect)
			r.Backend, r.Namespace, r.Route, r.Sticky = "be_edge_http", "shop", "front", proxy.StickyMissing
		}},
		{"allow-list", `public be_http:ns1:al/<NOSRV> -1/-1/-1/-1/0 -1 0 - - PRNN 7/3/0/0/0 0/0 "GET /a?b=c HTTP/1.1"`, func(r *proxy.Record) {
			away(r, 0, proxy.ReasonDenied)
			r.Backend, r.Namespace, r.Route, r.Sticky, r.HeadOut, r.BytesOut = "be_http", "ns1", "al", proxy.StickyMissing, 0, 0
		}},
		{"connection refused", `fe_sni~ be_edge_http:shop:front/pod:a:svc:http:10.0.0.1:8080 0/0/-1/-1/4 503 1334 - - SCNN 7/4/0/0/3 0/0 "GET /a?b=c HTTP/1.1"`, func(r *proxy.Record) {
			r.Connect, r.Response, r.Status, r.Reason, r.Retries, r.Inserted = -1, -1, 503, proxy.ReasonConnect, 3, false
		}},
		{"bad request", `public public/<NOSRV> -1/-1/-1/-1/0 400 0 - - PR-- 7/3/0/0/0 0/0 "<BADREQ>"`, func(r *proxy.Record) {
			away(r, 400, proxy.ReasonBadRequest)
			r.Method, r.HeadOut, r.BytesOut = nil, 0, 0
		}},
		{"server timeout", `fe_sni~ be_edge_http:shop:front/pod:a:svc:http:10.0.0.1:8080 0/0/0/-1/4 504 1334 - - sHNN 7/4/0/0/1 0/0 "GET /a?b=c HTTP/1.1"`, func(r *proxy.Record) {
			r.Response, r.Status, r.Reason, r.Inserted = -1, 504, proxy.ReasonServerTimeout, false
		}},
		{"captures", `fe_sni~ be_edge_http:shop:front/pod:a:svc:http:10.0.0.1:8080 0/0/0/3/4 200 1334 session=1 session=2 --NI 7/4/0/0/1 0/0 {a.test||cu#22rl} {} "GET /a?b=c HTTP/1.1"`, func(r *proxy.Record) {
			c := captured()
			r.Captures, r.Captured = c.Captures, c.Captured
		}},
		{"HTTP/2", `fe_sni~ be_edge_http:shop:front/pod:a:svc:http:10.0.0.1:8080 0/2/0/3/4 200 1334 - - --NI 7/4/0/0/1 0/0 "GET https://www.example.com/a?b=c HTTP/2.0"`, func(r *proxy.Record) {
			r.Spoken, r.Queue = protocol.HTTP2, 2*time.Millisecond
		}},
		{"passthrough", `public_ssl be_tcp:shop:front/pod:a:svc:http:10.0.0.1:8080 0/0/4 1234 -- 7/4/0/0/0 0/0`, func(r *proxy.Record) {
			r.Frontend, r.Backend, r.Method, r.HeadOut, r.Tunnel, r.Reason, r.Status, r.Retries = "public_ssl", "be_tcp", nil, 0, true, proxy.ReasonTunnelClosed, 0, 0
		}},
	} {
		r := served()
		if tc.change != nil {
			tc.change(r)
		}
		if got, _ := write(t, "", r); got != "192.0.2.7:50123 ["+when+"] "+tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.what, got, "192.0.2.7:50123 ["+when+"] "+tc.want)
		}
	}
}

// away makes r one that no server got.
func away(r *proxy.Record, status int, reason proxy.Reason) {
	r.Status, r.Reason, r.Frontend, r.Secure, r.Server, r.Endpoint = status, reason, "public", false, "", netip.AddrPort{}
	r.Backend, r.Sticky, r.Inserted, r.Connect, r.Response, r.Total, r.Retries = "", proxy.StickyOff, false, -1, -1, 0, 0
}

func TestVariables(t *testing.T) {
	for _, tc := range []struct {
		format, want string
		unknown      int
	}{
		{"%ci:%cp %fi:%fp %si:%sp", "192.0.2.7:50123 2001:db8::1:8443 10.0.0.1:8080", 0},
		{"%{+X}o %ci:%cp_%fi:%fp_%Ts_%rt:%pid %B", "C0000207:C3CB_20010DB8000000000000000000000001:20FB_69A7BDBF_0001:790E 1334", 0},
		{"%T|%trg|%ms|%{+X}ms|%Ts", "04/Mar/2026:05:06:07 +0000|04/Mar/2026:05:06:07 +0000|891|37B|1772600767", 0},
		{"%H %pid %rt %lc", "box 30990 1 1", 0},
		{"%HM %HP %HPO %HQ %HU %HV", "GET /a /a ?b=c /a?b=c HTTP/1.1", 0},
		{"%{+Q}HM %{+Q}ci %{+Q}cp %{+Q}ST %{+Q}[src]", `"GET" "192.0.2.7" 50123 200 "192.0.2.7"`, 0},
		{"%f %ft %b %s %sslv %sslc", "fe_sni fe_sni~ be_edge_http:shop:front pod:a:svc:http:10.0.0.1:8080 TLSv1.3 TLS_AES_128_GCM_SHA256", 0},
		{"%TR %Tq %Tw %Tc %Tr %Td %Ta %Tt %Tu", "0 0 0 0 3 1 4 4 4", 0},
		{"%ST %B %U %ts %tsc %rc %sq %bq %ac %fc %bc %sc", "200 1334 55 -- --NI 1 0 0 7 4 0 0", 0},
		{"%CC %CS %{+Q}CC %hrl %{+Q}hrl", `session=1 session=2 "session=1" a.test - cu#22rl "a.test" "" "cu#22rl"`, 0},
		{"<%hr> <%hs> %{+Q}hr", `<{a.test||cu#22rl}> <{}> "{a.test||cu#22rl}"`, 0},
		{"%[capture.req.hdr(2)] %{+E}[capture.req.hdr(2)] %{+Q}[capture.req.hdr(2)] %{+Q,+E}[capture.req.hdr(2)]", `cu"rl cu\"rl "cu#22rl" "cu\"rl"`, 0},
		{"%[capture.req.hdr(1)] %{+Q}[capture.req.hdr(1)] %[capture.res.hdr(0)]", `- "" -`, 0},
		{"%[req.hdr(User-Agent),upper] %[req.hdr(Host)]", `CU"RL a.test`, 0},
		{"%[capture.req.uri] %[capture.req.method,lower] %[capture.req.ver] %[query] %[path] %[url] %[method]", "/a?b=c get HTTP/1.1 b=c /a /a?b=c GET", 0},
		{"%[src_port] %[dst] %[dst_port] %[hostname] %[pid] %[date]", "50123 2001:db8::1 8443 box 30990 1772600767", 0},
		{"%[ssl_fc] %[ssl_fc_protocol] %[ssl_fc_cipher] %[ssl_fc_sni] %[status] %[fe_name] %[be_name] %[srv_name]", "1 TLSv1.3 TLS_AES_128_GCM_SHA256 www.example.com 200 fe_sni be_edge_http:shop:front pod:a:svc:http:10.0.0.1:8080", 0},
		{"%ID %{+Q}ID %[unique-id]", `id-1 "id-1" id-1`, 0},
		{"%Th %Ti %bi:%bp", "- - -:-", 4},
		{"%{+Q}[bogus] %[src,base64] %[capture.req.hdr(9)] %[req.hdr(other)] %[src(1)] %[res.hdr(a)]", `"" - - - - -`, 6},
		{"  a   b%%", "a b%", 0},
		{"é#", "#C3#A9#", 0},
	} {
		r := served()
		c := captured()
		r.Captures, r.Captured, r.UniqueID = c.Captures, c.Captured, []byte("id-1")
		got, warnings := write(t, tc.format, r)
		if got != tc.want || len(warnings) != tc.unknown {
			t.Errorf("%q gives %s\nwant %s\n%q", tc.format, got, tc.want, warnings)
		}
		for _, w := range warnings {
			if !strings.Contains(w, "%") || !strings.HasSuffix(w, " is not known here and stands as -") {
				t.Errorf("%q: %s", tc.format, w)
			}
		}
	}
	line, _ := write(t, "%[uuid] %[uuid(4)] %[rand]", served())
	if !regexp.MustCompile(`^([0-9a-f-]{36} ){2}\d+$`).MatchString(line) {
		t.Error(line)
	}
}

func TestTargets(t *testing.T) {
	for _, tc := range []struct{ target, want string }{
		{"/", `/ / / /`},
		{"http://a.test/b?c", `http://a.test/b /b ?c http://a.test/b?c /b?c`},
		{"http://a.test", `http://a.test / http://a.test /`},
		{"*", `* * * *`},
		{"/x://y", `/x://y /x://y /x://y /x://y`},
		{"/a\"#\x7f\xff\n?\x00", `/a#22#23#7F#FF#0A /a#22#23#7F#FF#0A ?#00 /a#22#23#7F#FF#0A?#00 /a#22#23#7F#FF#0A?#00`},
	} {
		r := served()
		r.Target = []byte(tc.target)
		if got, _ := write(t, "%HP %HPO %HQ %HU %[capture.req.uri]", r); got != tc.want {
			t.Errorf("%q: %s, want %s", tc.target, got, tc.want)
		}
	}
	r := served()
	r.Method = nil
	if got, _ := write(t, "%HM %HU %HV %HQ <%hr> %Td %TR", r); got != "<BADREQ> <BADREQ> <BADREQ> <BADREQ> <> 1 -1" {
		t.Error(got)
	}
}

// TestTerminationStates: every reason has two characters, by how far the request had come.
func TestTerminationStates(t *testing.T) {
	stages := []func(*proxy.Record){
		func(r *proxy.Record) { r.Server, r.Connect, r.Response = "", -1, -1 },
		func(r *proxy.Record) { r.Server, r.Connect, r.Response, r.Queue = "", -1, -1, 1 },
		func(r *proxy.Record) { r.Connect, r.Response = -1, -1 },
		func(r *proxy.Record) { r.Response = -1 },
		func(*proxy.Record) {},
	}
	want := map[proxy.Reason]string{ // for each stage
		proxy.ReasonOK: "-- -- -- -- --", proxy.ReasonRedirect: "LR LR LR LR LR", proxy.ReasonNoRoute: "SC SC SC SC SC", proxy.ReasonNoEndpoint: "SC SC SC SC SC",
		proxy.ReasonBadRequest: "PR PQ PC PH PD", proxy.ReasonRefused: "PR PQ PC PH PD", proxy.ReasonConnect: "SC SC SC SC SC", proxy.ReasonUpstreamReset: "SR SQ SC SH SD",
		proxy.ReasonUpstreamHead: "PH PH PH PH PH", proxy.ReasonServerTimeout: "sR sQ sC sH sD", proxy.ReasonClientTimeout: "cR cQ cC cH cD", proxy.ReasonClientGone: "CR CQ CC CH CD",
		proxy.ReasonTunnelClosed: "-- -- -- -- --", proxy.ReasonShutdown: "KR KQ KC KH KD", proxy.ReasonDenied: "PR PQ PC PH PD", proxy.ReasonRateLimited: "PR PQ PC PH PD",
		proxy.ReasonRewrite: "PR PQ PC PH PH", proxy.ReasonMonitor: "LR LR LR LR LR", proxy.ReasonTargetSize: "PR PQ PC PH PD", proxy.ReasonHeadSize: "PR PQ PC PH PD",
		proxy.ReasonUnsupported: "PR PQ PC PH PD", proxy.ReasonMisdirected: "PR PQ PC PH PD", proxy.ReasonFlood: "PR PQ PC PH PD", proxy.ReasonUpstreamTLS: "SC SC SC SC SC",
		proxy.ReasonQueueTimeout: "sQ sQ sQ sQ sQ", proxy.ReasonContentSize: "PR PQ PC PH PD", proxy.ReasonInternal: "IR IQ IC IH IH", proxy.ReasonSubject: "PR PQ PC PH PD",
		proxy.ReasonOverload:   "RR RQ RC RH RD",
		proxy.ReasonRouteShare: "RR RQ RC RH RD",
		proxy.ReasonLoop:       "PR PQ PC PH PD", proxy.ReasonMatchWork: "PR PQ PC PH PD",
		proxy.ReasonBackend: "SC SC SC SC SC", proxy.ReasonPreflight: "LR LR LR LR LR", proxy.ReasonRequestTimeout: "sR sQ sC sH sD",
	}
	for _, reason := range proxy.Reasons() {
		var got []string
		for _, stage := range stages {
			r := served()
			r.Reason = reason
			stage(r)
			got = append(got, termination(r))
		}
		if strings.Join(got, " ") != want[reason] {
			t.Errorf("%v: %v, want %s", reason, got, want[reason])
		}
	}
	cut := served()
	cut.Reason, cut.Detail = proxy.ReasonBadRequest, "incomplete-head"
	if got := termination(cut); got != "CR" {
		t.Errorf("half a head: %s", got)
	}
	for sticky, want := range map[proxy.Sticky]string{
		proxy.StickyOff: "--", proxy.StickyMissing: "NI", proxy.StickyUsed: "VI", proxy.StickyAway: "DI", proxy.StickyUnknown: "II",
	} {
		r := served()
		r.Sticky = sticky
		if got := stickiness(r); got != want {
			t.Errorf("%v: %s, want %s", sticky, got, want)
		}
	}
}

// TestBothWriters: a Log writes each record as JSON and as a message, and a format belongs to messages.
func TestBothWriters(t *testing.T) {
	f, _, err := NewFormat(FormatConfig{Format: "%HU %ac %ID"})
	if err != nil {
		t.Fatal(err)
	}
	var lines, messages bytes.Buffer
	l, err := New(Config{Writer: &lines, Messages: &messages, Format: f})
	if err != nil {
		t.Fatal(err)
	}
	r := served()
	r.UniqueID = bytes.Repeat([]byte("i"), maxID+1)
	l.Log(r)
	l.Log(sample())
	l.Close()
	if got, want := messages.String(), "/a?b=c 0 "+strings.Repeat("i", maxID)+"\n/a?b=c 0 -\n"; got != want {
		t.Errorf("messages %q, want %q", got, want)
	}
	if got := strings.Count(lines.String(), "\n"); got != 2 || l.Stats().Written != 2 {
		t.Errorf("%d lines, %+v", got, l.Stats())
	}
	for _, cfg := range []Config{{Messages: &messages}, {Writer: &lines, Format: f}, {Format: f}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
}

// FuzzFormat: whatever format there is and whatever clients send, a line is printable ASCII, and quotes end where they should.
func FuzzFormat(f *testing.F) {
	f.Add(HTTPLog, []byte("GET"), []byte("/a\"b\r\n#"), []byte("v{|}\"\x1b"))
	f.Add("%{+Q}o %ci %[capture.req.hdr(0),lower] %hrl %ID %[bogus]", []byte("G"), []byte("http://x"), []byte("\xff"))
	f.Add("%{+E,+X}r%hs%%%T", []byte{}, []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, format string, method, target, value []byte) {
		r := served()
		r.Method, r.Target, r.Host, r.UniqueID = method, target, value, value
		r.Captures = &proxy.Captures{Request: []proxy.Capture{{Name: "a"}}, Response: []proxy.Capture{{Name: "b"}}, Cookie: proxy.Capture{Name: "c"}}
		r.Captured = [][]byte{value, value, value, value}
		for _, spoken := range []protocol.Protocol{protocol.HTTP1, protocol.HTTP2} {
			r.Spoken = spoken
			formatter, _, err := NewFormat(FormatConfig{Format: format, Captures: r.Captures})
			if err != nil {
				return
			}
			for i, c := range formatter.Append(nil, r) {
				if c < ' ' || c > '~' {
					t.Fatalf("%q: byte %d is %#x", format, i, c)
				}
			}
			plain, _, _ := NewFormat(FormatConfig{Captures: r.Captures})
			line := string(plain.Append(nil, r))
			if last := line[strings.LastIndexByte(line[:len(line)-1], '"')+1:]; strings.Count(strings.TrimSuffix(last, `"`), `"`) != 0 || !strings.HasSuffix(line, `"`) {
				t.Fatalf("%q: the request is not what stands in the last quotes: %s", target, line)
			}
		}
	})
}
