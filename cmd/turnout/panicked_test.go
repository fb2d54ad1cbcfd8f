package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"turnout/controller"
	"turnout/proxy"
)

// TestPanicFailsOneRequest: a panic over a message is answered 500 and told once, with its stack; the router serves on.
func TestPanicFailsOneRequest(t *testing.T) {
	app := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			w.Header().Set("X-Bad", "value")
		}
	})
	core, logged := observer.New(zap.ErrorLevel)
	plane, _ := startRooms(t, siteDir(t, app), controller.Options{}, func(c *dataplaneConfig) {
		c.Log, c.AccessLog = zap.New(core), noLog{}
		c.Headers.captures = proxy.Captures{Response: []proxy.Capture{{Name: "x-bad", Max: -1}}}
	})
	for range 3 {
		for path, status := range map[string]int{"/bad": 500, "/good": 200} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "http://"+plane.HTTP().String()+path, nil)
			r.Host, r.RequestURI = "front.example.com", ""
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(w, answer.Body)
			answer.Body.Close()
			if answer.StatusCode != status {
				t.Errorf("%s: status %d, want %d", path, answer.StatusCode, status)
			}
		}
	}
	lines := logged.All()
	if len(lines) == 0 || !strings.Contains(lines[0].ContextMap()["stack"].(string), "responsePolicy") {
		t.Errorf("logged %v", lines)
	}
}

// noLog is an access log that keeps nothing.
type noLog struct{}

func (noLog) Log(*proxy.Record) {}
