package rewrite

import (
	"fmt"
	"strings"
)

// URL says what endpoints, or a redirect, get in the place of the host and the path of a request, as plain data. The zero value changes nothing.
type URL struct {
	Host string   // "" = it stays; with a port if one is to be said
	Kind PathKind // of Path
	Path string   // begins with "/", or is "" for no more than "/"; neither query nor fragment
	// Prefix is what Path replaces of the path with ReplacePrefix: whole segments; slashes at its end do not matter.
	Prefix string
}

// PathKind says what is replaced. The zero value is KeepPath.
type PathKind uint8

// The kinds.
const (
	KeepPath      PathKind = iota
	ReplacePath            // the whole path
	ReplacePrefix          // the segments of URL.Prefix; a path that does not begin with them stays
)

// New compiles u.
func New(u URL) (*Rule, error) {
	r := &Rule{}
	for i := range len(u.Host) {
		if c := u.Host[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`/?#@\"<>`, c) >= 0 {
			return nil, fmt.Errorf("cannot rewrite to host %q: allowed are a name or an address, and a port", u.Host)
		}
	}
	if u.Host != "" {
		r.host = []byte(u.Host)
	}
	if u.Kind == KeepPath {
		r.keeps = true
		return r, nil
	}
	if u.Path != "" && u.Path[0] != '/' || strings.ContainsAny(u.Path, "?#") || len(u.Path) > MaxTarget {
		return nil, fmt.Errorf("cannot rewrite to path %.200q: allowed is what begins with a slash and has no query, of %d bytes at most", u.Path, MaxTarget)
	}
	text := u.Path
	if u.Kind == ReplacePrefix {
		r.path, r.segments = strings.TrimRight(u.Prefix, "/"), true
		text = strings.TrimRight(u.Path, "/")
	} else if text == "" {
		text = "/"
	}
	if text != "" {
		r.parts = append(r.parts, part{text: escape([]byte(text)), ref: refText})
	}
	if u.Kind == ReplacePrefix {
		r.parts = append(r.parts, part{ref: refRest})
	}
	return r, nil
}

// WithHost returns a rule that does to the path what r does, and has endpoints get another host. r may be nil: the path stays.
func WithHost(r *Rule, host string) (*Rule, error) {
	made, err := New(URL{Host: host})
	if err != nil || r == nil {
		return made, err
	}
	both := *r
	both.host = made.host
	return &both, nil
}

// Host is what takes the place of the host, nil = it stays. Nobody may change it.
func (r *Rule) Host() []byte { return r.host }

// KeepsPath reports that the rule does nothing to the path.
func (r *Rule) KeepsPath() bool { return r.keeps }
