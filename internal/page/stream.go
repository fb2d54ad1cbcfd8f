package page

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// every is the time between two events of a stream, and how old a snapshot may be that is shown.
const every = 2 * time.Second

// shared is one snapshot for all who look at the same time.
type shared struct {
	take  func() any
	clock func() time.Time

	mu   sync.Mutex
	at   time.Time // of text; zero = there is none yet
	text []byte    // JSON on one line
}

// snapshot returns what is not older than a moment. It is read-only.
func (s *shared) snapshot() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	if age := now.Sub(s.at); s.text != nil && age >= 0 && age < every*9/10 {
		return s.text
	}
	text, err := json.Marshal(s.take())
	if err != nil {
		return []byte("{}") // there is nothing in it that JSON has no words for
	}
	s.at, s.text = now, append(text, '\n')
	return s.text
}

// stream sends server-sent events (the WHATWG's HTML, section 9.2): a snapshot at once and every two seconds, until the request ends. A
// browser comes back then, a second later.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	if r.Method == http.MethodHead {
		return
	}
	next := time.NewTicker(every)
	defer next.Stop()
	for first := true; ; first = false {
		event := []byte("data: ")
		if first {
			event = []byte("retry: 1000\ndata: ")
		}
		if _, err := w.Write(append(append(event, h.shared.snapshot()...), '\n')); err != nil || out.Flush() != nil {
			return // the client has gone, or takes nothing
		}
		select {
		case <-next.C:
		case <-r.Context().Done():
			return
		}
	}
}
