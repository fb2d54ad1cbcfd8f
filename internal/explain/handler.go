package explain

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"

	"turnout/routing"
)

// HandlerConfig is what a Handler needs. Explainer and Table are required.
type HandlerConfig struct {
	Explainer *Explainer
	Table     func() *routing.Table // that is served
	// Change answers with what the objects of a manifest would change; nil = nobody knows. See With and Differences.
	Change Change
	// Stories are past requests; nil = none are remembered.
	Stories *Ring
}

// mostManifest is how many bytes of manifests a request may bring.
const mostManifest = 4 << 20

// NewHandler answers GET /explain?url=URL with an Answer, and POST, whose body is a manifest, with what that would change besides. The
// parameters are those of Query: method, header, cookie, client, http2, servername, gateway, head and secure; header and cookie may be there several
// times. diff=true, without url, asks for all that a manifest changes (Differences). request=ID is the Story of a past request, request= without one lists
// them. o=text answers with text for people.
func NewHandler(cfg HandlerConfig) *Handler { return &Handler{cfg} }

// Handler answers /explain, see NewHandler.
type Handler struct{ cfg HandlerConfig }

// texter is an answer that people can read.
type texter interface{ Text(w io.Writer) error }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, status, err := h.answer(r)
	if err != nil {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, err.Error()+"\n") // the client has gone, or sees it
		return
	}
	if r.URL.Query().Get("o") == "text" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_ = answer.Text(w) // as above
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = encode(w, answer) // as above
}

// Errors of a handler.
var (
	errUnknownRequest = errors.New("no such request is remembered: it was neither slow, failed nor sampled, or so many came after it that it is forgotten")
	errNoChanges      = errors.New("nothing is known of the objects, so no change can be explained")
	errNoManifest     = errors.New("POST brings a manifest, of type application/yaml")
)

func (h *Handler) answer(r *http.Request) (texter, int, error) {
	v := r.URL.Query()
	if v.Has("request") {
		return h.story(v.Get("request"))
	}
	q, err := ParseValues(v)
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	if r.Method != http.MethodPost {
		a, err := h.cfg.Explainer.Explain(h.cfg.Table(), q)
		if err != nil {
			return nil, http.StatusBadRequest, err
		}
		return a, 0, nil
	}
	if h.cfg.Change == nil {
		return nil, http.StatusNotImplemented, errNoChanges
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/yaml" {
		return nil, http.StatusUnsupportedMediaType, errNoManifest
	}
	manifest, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, mostManifest))
	if err != nil {
		return nil, http.StatusRequestEntityTooLarge, err
	}
	after, err := h.cfg.Change(r.Context(), manifest)
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	if v.Get("diff") == "true" {
		d, err := h.cfg.Explainer.Differences(h.cfg.Table(), after)
		if err != nil {
			return nil, http.StatusInternalServerError, err
		}
		return d, 0, nil
	}
	a, err := h.cfg.Explainer.With(h.cfg.Table(), after, q)
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	return a, 0, nil
}

func (h *Handler) story(id string) (texter, int, error) {
	if h.cfg.Stories == nil {
		return nil, http.StatusNotFound, errUnknownRequest
	}
	if id == "" {
		return Stories(h.cfg.Stories.All()), 0, nil
	}
	if s, ok := h.cfg.Stories.Find(id); ok {
		return &s, 0, nil
	}
	return nil, http.StatusNotFound, errUnknownRequest
}

// ParseValues reads a Query as NewHandler says.
func ParseValues(v url.Values) (q Query, err error) {
	q = Query{URL: v.Get("url"), Method: v.Get("method"), Header: v["header"], Cookies: v["cookie"], HTTP2: v.Get("http2") == "true", ServerName: v.Get("servername"), Gateway: v.Get("gateway"), Secure: v.Get("secure") == "true"}
	if v.Has("head") {
		q.Head = []byte(v.Get("head"))
	}
	if client := v.Get("client"); client != "" {
		if q.Client, err = netip.ParseAddr(client); err != nil {
			return q, errors.New("client is no address")
		}
	}
	return q, nil
}

// Values writes a Query as ParseValues reads it.
func (q *Query) Values() url.Values {
	v := url.Values{}
	set := func(key, value string) {
		if value != "" {
			v.Set(key, value)
		}
	}
	set("url", q.URL)
	set("method", q.Method)
	set("servername", q.ServerName)
	set("gateway", q.Gateway)
	if q.Client.IsValid() {
		v.Set("client", q.Client.String())
	}
	if q.HTTP2 {
		v.Set("http2", "true")
	}
	if q.Head != nil {
		v.Set("head", string(q.Head))
	}
	if q.Secure {
		v.Set("secure", "true")
	}
	for _, h := range q.Header {
		v.Add("header", h)
	}
	for _, c := range q.Cookies {
		v.Add("cookie", c)
	}
	return v
}
