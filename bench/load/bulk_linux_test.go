package load

import (
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// relay is a proxy that changes what the backend sends.
func relay(t *testing.T, to netip.AddrPort, change func(hello []byte), copyBack func(dst io.Writer, src io.Reader)) netip.AddrPort {
	t.Helper()
	return serve(t, nil, func(c net.Conn) {
		b, err := net.Dial("tcp", to.String())
		if err != nil {
			return // the backend has gone: the test is over
		}
		defer func() { _ = b.Close() }()
		hello := make([]byte, 64<<10)
		n, err := c.Read(hello)
		if err != nil {
			return
		}
		change(hello[:n])
		if _, err := b.Write(hello[:n]); err == nil {
			copyBack(c, b)
		}
	})
}

func TestBulkCountsRightBytes(t *testing.T) {
	same := func([]byte) {}
	all := func(dst io.Writer, src io.Reader) { _, _ = io.Copy(dst, src) }
	for name, c := range map[string]struct {
		change   func([]byte)
		copyBack func(io.Writer, io.Reader)
		want     string
	}{
		"right":         {same, all, ""},
		"other hello":   {func(p []byte) { p[len(p)-1] ^= 1 }, all, "another ClientHello"},
		"missing bytes": {same, func(dst io.Writer, src io.Reader) { _, _ = io.CopyN(dst, src, 2*MiB) }, "got 2097152 of 3145728 bytes"},
		"moved bytes": {same, func(dst io.Writer, src io.Reader) {
			_, _ = io.CopyN(io.Discard, src, 1)
			all(dst, src)
		}, "wrong bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBulk("bench.test", 3*MiB)
			defer b.Close()
			var marks []bool
			length := 50 * time.Millisecond
			if c.want != "" {
				length = time.Hour // the failure ends it
			}
			res, err := b.Run(t.Context(), BulkProfile{
				Addr: relay(t, b.Addr(), c.change, c.copyBack), Streams: 2,
				Span: Span{Measure: length, Mark: func(end bool) { marks = append(marks, end) }},
			})
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || res.Failures == 0 {
					t.Errorf("got %+v, %v; want %q", res, err, c.want)
				}
				return
			}
			if err != nil || res.Requests == 0 || res.Failures != 0 || len(marks) != 2 || marks[0] || !marks[1] {
				t.Errorf("got %+v, marks %v, %v", res, marks, err)
			}
		})
	}
}

func TestClientHelloIsOneRecord(t *testing.T) {
	hello := ClientHello(&tls.Config{ServerName: "bench.test"})
	if hello[0] != 22 || hello[5] != 1 || int(hello[3])<<8|int(hello[4]) != len(hello)-5 || !strings.Contains(string(hello), "bench.test") {
		t.Errorf("hello is %x", hello)
	}
}
