package admin

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestLargeScrapesAreSentAsTheyAreMade: what is more than is kept goes out before all of it is there.
func TestLargeScrapesAreSentAsTheyAreMade(t *testing.T) {
	piece, arrived := bytes.Repeat([]byte("metric 1\n"), 1000), make(chan struct{})
	pieces := mostKept/len(piece) + 100
	s, _ := startLimited(t, defaults(), func(cfg *Config) {
		cfg.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			for range pieces {
				if _, err := w.Write(piece); err != nil {
					t.Error(err)
				}
			}
			<-arrived // of what was made until now
			_, _ = io.WriteString(w, "end\n")
		})
	})
	resp, err := http.Get("http://" + s.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, mostKept/2)
	if _, err := io.ReadFull(resp.Body, first); err != nil {
		t.Fatal(err)
	}
	close(arrived)
	rest, err := io.ReadAll(resp.Body)
	if all := append(first, rest...); err != nil || !bytes.Equal(all, append(bytes.Repeat(piece, pieces), "end\n"...)) || resp.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("%d bytes of %d, %v, %v", len(all), pieces*len(piece)+4, err, resp.Header)
	}
}

// TestPiecesAreUsedAgain: however long the text of a scrape, it takes as much memory as is kept of it.
func TestPiecesAreUsedAgain(t *testing.T) {
	p := &pieces{to: httptest.NewRecorder(), header: make(http.Header), status: http.StatusOK}
	p.to.(*httptest.ResponseRecorder).Body = nil
	text := bytes.Repeat([]byte("metric 1\n"), pieceSize)
	seen := make(map[*byte]bool)
	for range 5 * mostKept / len(text) {
		if _, err := p.Write(text); err != nil {
			t.Fatal(err)
		}
		for _, piece := range p.pieces {
			seen[&piece[0]] = true
		}
	}
	if len(seen) != mostKept/pieceSize {
		t.Errorf("%d pieces were made, want %d", len(seen), mostKept/pieceSize)
	}
}
