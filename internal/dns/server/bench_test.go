package server

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// BenchmarkUDP: queries and answers through the sockets of the system, with the client in the same process; it takes about as much
// processor time as the server.
func BenchmarkUDP(b *testing.B) {
	r := start(b, Config{Workers: 1})
	conn, err := net.Dial("udp", r.Addr())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	message, err := question("myapp-test."+origin, dns.TypeA).Pack()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	before := processorTime(b)
	in := make([]byte, 2048)
	const window = 64
	for sent, received := 0, 0; received < b.N; {
		for ; sent < b.N && sent-received < window; sent++ {
			if _, err := conn.Write(message); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := conn.Read(in); err != nil {
			b.Fatal(err)
		}
		received++
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// processorTime is what the process has used.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
