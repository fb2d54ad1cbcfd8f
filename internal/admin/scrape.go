package admin

import (
	"net/http"
	"time"

	"turnout/internal/bound"
)

// gatherPatience is how long a scrape waits for the one before it to be gathered: less than scrapers wait as a rule.
const gatherPatience = 8 * time.Second

// scrape answers /metrics. What is gathered takes several times the memory of its text, so that is made for one visitor at a time, and slow ones
// hold the text alone.
func (s *Server) scrape(w http.ResponseWriter, r *http.Request) {
	late := time.NewTimer(s.patience)
	defer late.Stop()
	select {
	case s.gathers <- struct{}{}:
	case <-late.C:
		s.cfg.Bounds.Reached(bound.AdminAnswers)
		busy(w)
		return
	}
	text := s.gather(r)
	for name, values := range text.header {
		w.Header()[name] = values
	}
	w.WriteHeader(text.status)
	for i, piece := range text.pieces {
		if _, err := w.Write(piece); err != nil {
			return // the client has gone, or does not read
		}
		text.pieces[i] = nil
	}
}

// gather makes the text.
func (s *Server) gather(r *http.Request) *pieces {
	defer func() { <-s.gathers }()
	text := &pieces{header: make(http.Header), status: http.StatusOK}
	s.cfg.Metrics.ServeHTTP(text, r)
	return text
}

// pieceSize is how much memory is taken at a time for an answer that is kept.
const pieceSize = 64 << 10

// pieces is an answer that is kept. It implements http.ResponseWriter.
type pieces struct {
	header http.Header
	status int
	pieces [][]byte
}

// Header implements http.ResponseWriter.
func (p *pieces) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *pieces) WriteHeader(status int) { p.status = status }

// Write implements http.ResponseWriter. It never fails.
func (p *pieces) Write(text []byte) (int, error) {
	n := len(text)
	for len(text) > 0 {
		last := len(p.pieces) - 1
		if last < 0 || len(p.pieces[last]) == cap(p.pieces[last]) {
			p.pieces = append(p.pieces, make([]byte, 0, pieceSize))
			last++
		}
		piece := p.pieces[last]
		part := min(len(text), cap(piece)-len(piece))
		p.pieces[last] = append(piece, text[:part]...)
		text = text[part:]
	}
	return n, nil
}
