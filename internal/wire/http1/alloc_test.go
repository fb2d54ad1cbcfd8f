package http1

import "testing"

// The request path may not allocate: not for what is accepted, not for what is
// refused.
func TestNoAllocations(t *testing.T) {
	var (
		q   Request
		s   Response
		d   ChunkDecoder
		buf = make([]byte, 0, 4096)
		out = make([]byte, 0, 4096)
	)
	upgrade := get("Connection: upgrade, foo", "Upgrade: websocket", "TE: trailers")
	absolute := "GET http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\n\r\n"
	for name, run := range map[string]func(){
		"request": func() {
			buf = append(buf[:0], typicalRequest...)
			FindHeadEnd(buf, 0, Limits{})
			ParseRequest(buf, &q, Limits{})
			out = appendHead(out[:0], &q)
		},
		"upgrade": func() { buf = append(buf[:0], upgrade...); ParseRequest(buf, &q, Limits{}) },
		"absolute": func() {
			buf = append(buf[:0], absolute...)
			ParseRequest(buf, &q, Limits{})
			out = AppendRequestLine(out[:0], q.Method, q.Path, q.Query, q.Minor)
		},
		"refused": func() {
			buf = append(buf[:0], "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"...)
			if ParseRequest(buf, &q, Limits{}) == nil {
				t.Error("accepted")
			}
		},
		"response": func() {
			buf = append(buf[:0], typicalResponse...)
			ParseResponse(buf, &s, nil, Limits{})
			out = AppendFields(AppendStatusLine(out[:0], 1, s.Status, s.Reason), s.Fields, nil)
		},
		"chunked": func() {
			buf = append(buf[:0], "5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n"...)
			d.Reset(ChunkLimits{})
			for p := buf; ; {
				_, n, state, err := d.NextData(p)
				p = p[n:]
				if err != nil || state == ChunkMore {
					t.Error("not decoded", err)
				}
				if state == ChunkDone {
					break
				}
			}
			out = AppendLastChunk(AppendChunkHeader(out[:0], 5), d.Trailers(), nil)
		},
	} {
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func appendHead(dst []byte, r *Request) []byte {
	return AppendHeadEnd(AppendFields(AppendRequestLine(dst, r.Method, r.Path, r.Query, r.Minor), r.Fields, nil))
}
