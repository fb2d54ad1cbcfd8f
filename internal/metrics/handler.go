package metrics

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
)

// New checks the configuration.
func New(cfg Config) (*Handler, error) {
	c, err := newCollector(cfg)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		c, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{Namespace: "haproxy"}),
	)
	return &Handler{c: c, registry: registry}, nil
}

// Handler serves all metrics, with those of the Go runtime and the process, in the format and encoding that is asked for. What each
// route and server has is written as it is read: it is never in memory as a whole. Any goroutine may use it.
type Handler struct {
	c        *collector
	registry *prometheus.Registry
	zips     sync.Pool // of *gzip.Writer
}

// Follow chooses the routes whose latencies have series of their own, as a scrape does, if it is time: for others who show
// them, where nobody scrapes.
func (h *Handler) Follow() {
	if h.c.cfg.Latencies != nil && h.c.follower.due(time.Now()) {
		h.c.follower.choose(backends(h.c.cfg.Table()), time.Now())
	}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { serve(w, r, &h.zips, h.write) }

// serve writes metrics in the format and encoding that is asked for. zips are of *gzip.Writer.
func serve(w http.ResponseWriter, r *http.Request, zips *sync.Pool, write func(io.Writer, expfmt.Format)) {
	format := expfmt.NegotiateIncludingOpenMetrics(r.Header)
	switch format.FormatType() {
	case expfmt.TypeTextPlain, expfmt.TypeOpenMetrics, expfmt.TypeProtoDelim:
	default: // the forms of Protocol Buffers that are for people
		format = expfmt.NewFormat(expfmt.TypeTextPlain)
	}
	w.Header().Set("Content-Type", string(format))
	w.Header().Set("Vary", "Accept-Encoding")
	if !takesGzip(r) {
		write(w, format)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	zip, ok := zips.Get().(*gzip.Writer)
	if !ok {
		zip, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is one
	}
	defer zips.Put(zip)
	zip.Reset(w)
	write(zip, format)
	_ = zip.Close() // the client has gone
}

// takesGzip reports that the client reads gzip (RFC 9110 section 12.5.3).
func takesGzip(r *http.Request) bool {
	for _, value := range r.Header.Values("Accept-Encoding") {
		for item := range strings.SplitSeq(value, ",") {
			coding, weight, _ := strings.Cut(item, ";")
			if strings.EqualFold(strings.TrimSpace(coding), "gzip") && strings.TrimSpace(weight) != "q=0" {
				return true
			}
		}
	}
	return false
}

// write writes all metrics. Nothing is to be done about a client that has gone.
func (h *Handler) write(w io.Writer, format expfmt.Format) {
	encoder := expfmt.NewEncoder(w, format)
	if !encode(encoder, h.registry) || h.c.write(newExposition(w, format)) != nil {
		return
	}
	end(encoder)
}

// encode writes what a registry has, and reports whether the client is there.
func encode(encoder expfmt.Encoder, registry *prometheus.Registry) bool {
	few, _ := registry.Gather() // one odd name must not hide the rest
	for _, family := range few {
		if encoder.Encode(family) != nil {
			return false
		}
	}
	return true
}

// end writes what stands at the end.
func end(encoder expfmt.Encoder) {
	if end, ok := encoder.(expfmt.Closer); ok {
		_ = end.Close()
	}
}
