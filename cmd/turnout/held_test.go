package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestHeldMemory: clients of one address who complete nothing end when they make the router hold more than it may; a client of
// another address who is as slow is served in the end.
func TestHeldMemory(t *testing.T) {
	app := backend(t, func(http.ResponseWriter, *http.Request) {})
	p := startRouter(t, nil, "--manifests", siteDir(t, app), "--threads", "1", "--held-memory", "4", "--slowloris-timeout", "1m")
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
	patient, err := from.Dial("tcp", p.http)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { patient.Close() })
	if err := patient.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	half := "GET / HTTP/1.1\r\nHost: front.example.com\r\nX: " + strings.Repeat("x", 20000)
	if _, err := io.WriteString(patient, half); err != nil {
		t.Fatal(err)
	}
	var clients []net.Conn
	for range 150 { // 32 KiB each, 4.7 MiB in all
		clients = append(clients, dial(t, p.http, half))
	}
	ended := 0
	for _, c := range clients { // whether one ended shows when it goes on
		if _, err := io.WriteString(c, "\r\n\r\n"); err != nil {
			ended++
			continue
		}
		if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
			ended++
		}
	}
	if ended == 0 || ended == len(clients) {
		t.Errorf("%d of %d clients ended", ended, len(clients))
	}
	if status := ask(t, patient, "\r\n\r\n").StatusCode; status != 200 {
		t.Errorf("status %d for a client of another address", status)
	}
	if _, text := get(t, "http://"+p.admin+"/metrics", ""); strings.Contains(text, `turnout_bound_reached_total{bound="held-memory"} 0`+"\n") {
		t.Error("nothing was counted")
	}
	p.awaits(`turnout_memory_held_bytes{what="input"} 0`)
}

// TestHeldBodies: the body of a request that may have to be sent again counts as held until its answer begins.
func TestHeldBodies(t *testing.T) {
	answer := make(chan struct{})
	app := backend(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-answer
	})
	p := startRouter(t, nil, "--manifests", siteDir(t, app), "--threads", "1")
	c := dial(t, p.http, "PUT / HTTP/1.1\r\nHost: front.example.com\r\nContent-Length: 5\r\n\r\nhello")
	p.awaits(`turnout_memory_held_bytes{what="bodies"} 2048`)
	close(answer)
	if status := ask(t, c, "").StatusCode; status != 200 {
		t.Errorf("status %d", status)
	}
	p.awaits(`turnout_memory_held_bytes{what="bodies"} 0`)
}
