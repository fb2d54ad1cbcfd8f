package http1

import "testing"

func TestKeepAliveTimeout(t *testing.T) {
	for value, want := range map[string]int{
		"timeout=5": 5, "timeout=5, max=100": 5, "max=1000,timeout=75": 75, "Timeout=3": 3, " timeout=2 ,x": 2,
		"timeout=0": -1, "timeout=00": -1, "timeout=99999999999999999999": maxKeepAlive,
		"": 0, "timeout": 0, "timeout=": 0, "timeout=x": 0, "timeout=-1": 0, "timeout=5s": 0, "xtimeout=5": 0, "max=5": 0, ",,": 0,
	} {
		if got := keepAliveTimeout([]byte(value)); got != want {
			t.Errorf("%q: %d, want %d", value, got, want)
		}
	}
	var r Response
	head := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: timeout=7\r\n\r\n"
	if err := ParseResponse([]byte(head), &r, []byte("GET"), Limits{}); err != nil || r.IdleTimeout != 7 {
		t.Errorf("idle timeout %d, %v", r.IdleTimeout, err)
	}
}
