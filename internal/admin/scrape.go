package admin

import (
	"net/http"
	"time"

	"turnout/internal/bound"
)

// gatherPatience is how long a scrape waits for the one before it to be gathered: less than scrapers wait as a rule.
const gatherPatience = 8 * time.Second

// mostKept is how many bytes of the text of a scrape are kept, so that it is gathered at once however slow its visitor is. What is more
// goes out as it is made, and the next scrape waits for that.
const mostKept = 8 << 20

// scrape answers /metrics. To gather it takes memory besides the text, so it is gathered for one visitor at a time.
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
	s.gather(w, r).send()
}

// gather makes the text, as much of it as is kept.
func (s *Server) gather(w http.ResponseWriter, r *http.Request) *pieces {
	defer func() { <-s.gathers }()
	text := &pieces{to: w, header: make(http.Header), status: http.StatusOK}
	s.cfg.Metrics.ServeHTTP(text, r)
	return text
}

// pieceSize is how much memory is taken at a time for an answer that is kept.
const pieceSize = 64 << 10

// pieces is an answer that is kept until it is sent, or has mostKept bytes. It implements http.ResponseWriter.
type pieces struct {
	to     http.ResponseWriter
	header http.Header
	status int
	pieces [][]byte
	sent   [][]byte // may be used again
	begun  bool     // the head is sent
	err    error    // the client has gone, or does not read
}

// Header implements http.ResponseWriter.
func (p *pieces) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *pieces) WriteHeader(status int) { p.status = status }

// Write implements http.ResponseWriter. It fails when the client has gone, or does not read.
func (p *pieces) Write(text []byte) (int, error) {
	n := len(text)
	for len(text) > 0 {
		last := len(p.pieces) - 1
		if last < 0 || len(p.pieces[last]) == cap(p.pieces[last]) {
			if len(p.pieces) >= mostKept/pieceSize {
				if p.send(); p.err != nil {
					return 0, p.err
				}
			}
			p.pieces = append(p.pieces, p.piece())
			last = len(p.pieces) - 1
		}
		piece := p.pieces[last]
		part := min(len(text), cap(piece)-len(piece))
		p.pieces[last] = append(piece, text[:part]...)
		text = text[part:]
	}
	return n, nil
}

// piece returns an empty one.
func (p *pieces) piece() []byte {
	last := len(p.sent) - 1
	if last < 0 {
		return make([]byte, 0, pieceSize)
	}
	piece := p.sent[last]
	p.sent = p.sent[:last]
	return piece
}

// send sends what is kept.
func (p *pieces) send() {
	if !p.begun {
		p.begun = true
		for name, values := range p.header {
			p.to.Header()[name] = values
		}
		p.to.WriteHeader(p.status)
	}
	for i, piece := range p.pieces {
		if p.err == nil {
			_, p.err = p.to.Write(piece)
		}
		p.pieces[i] = nil
		p.sent = append(p.sent, piece[:0])
	}
	p.pieces = p.pieces[:0]
}
