package admin

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// paged is a page whose answers begin and wait.
func paged(t *testing.T) (s testServer, begun chan string, free chan struct{}, base string) {
	begun, free = make(chan string, 32), make(chan struct{})
	s = startWith(t, func(c *Config) {
		c.Page = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begun <- r.URL.Path
			if http.NewResponseController(w).Flush() != nil {
				return
			}
			select {
			case <-free:
			case <-r.Context().Done():
			}
		})
	})
	return s, begun, free, "http://" + s.Addr().String()
}

// askBeyond has so many requests for a path begin, and asks for one more.
func askBeyond(t *testing.T, begun chan string, url string, most int) (status int) {
	t.Helper()
	for range most {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode != http.StatusOK { // it has not begun, and never will
			t.Fatalf("%s got status %d before %d of them were under way", url, resp.StatusCode, most)
		}
		<-begun
	}
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// TestPageIsBounded: a source has its share of answers and of streams of events, and neither takes the other's places.
func TestPageIsBounded(t *testing.T) {
	_, begun, free, base := paged(t)
	defer close(free)
	if status := askBeyond(t, begun, base+"/view/routes", viewShare); status != http.StatusServiceUnavailable {
		t.Errorf("one answer more: %d", status)
	}
	if status := askBeyond(t, begun, base+"/view/events", streamShare); status != http.StatusServiceUnavailable {
		t.Errorf("one stream more: %d", status)
	}
}

// TestStreamsEndWithTheServer: who reads events does not hold up the end of the process.
func TestStreamsEndWithTheServer(t *testing.T) {
	s, begun, free, base := paged(t)
	defer close(free)
	resp, err := http.Get(base + "/view/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-begun
	go s.leave()
	late := time.AfterFunc(longestStream/4, func() { resp.Body.Close() }) // well before it ends by itself
	if _, err := io.ReadAll(resp.Body); err != nil || !late.Stop() {
		t.Errorf("the stream has not ended with the server, but was closed after %v: %v", longestStream/4, err)
	}
}

// TestStreamsEnd: a stream of events whose client stays ends by itself, after its time; in virtual time. Without that all here would wait for ever, which
// synctest reports.
func TestStreamsEnd(t *testing.T) {
	s := startWith(t, func(c *Config) {
		c.Page = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	})
	s.leaving = context.Background() // the server does not end, and must not end what is of virtual time
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s.page(pageStreams)(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, pageStreams, nil))
		if took := time.Since(began); took != longestStream {
			t.Errorf("it went on for %v, want %v", took, longestStream)
		}
	})
}

// TestPagePaths: the page has / and what is below /view/, and takes nothing but GET and HEAD.
func TestPagePaths(t *testing.T) {
	s := startWith(t, func(c *Config) {
		c.Page = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) })
	})
	for _, path := range []string{"/", "/view/overview", "/view/events"} {
		s.get(path, 200, path)
		s.do("POST", path, 405, "only GET and HEAD\n")
	}
	s.get("/views", 404, "not found\n")
}
