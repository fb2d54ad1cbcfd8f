// Package cors compiles and applies which pages of other origins may use what a rule serves (cross-origin resource sharing, the Fetch
// standard section 3.3, and the CORS filter of the Gateway API). A preflight is answered by the router; to those of others fields are added.
// Of what an endpoint says about it nothing is left.
package cors

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"turnout/internal/wire/field"
)

// Config is a Rule as plain data. "*" alone in a list stands for everything.
type Config struct {
	// Origins are scheme://host or scheme://host:port with http or https. A host of "*" is any, one that begins with "*." stands for all with
	// any number of labels there. Empty = none.
	Origins []string
	Methods []string // that pages may use besides GET, HEAD and POST; letter case matters
	Headers []string // fields that pages may send, besides those that they always may
	Expose  []string // fields that pages may read, besides those that they always may; "*" means nothing with Credentials

	Credentials bool // requests may come with cookies and the like
	MaxAge      int  // seconds for which a browser remembers the answer to a preflight; <= 0 = DefaultMaxAge
}

// DefaultMaxAge is in seconds.
const DefaultMaxAge = 5

// Rule is a compiled Config. It is immutable and may be shared.
type Rule struct {
	all         bool // origins
	origins     []origin
	methods     []byte // nil = the one that is asked for
	anyMethod   bool
	headers     []byte
	anyHeader   bool
	expose      []byte
	credentials bool
	maxAge      []byte
}

// origin is one that is allowed, in lower-case letters and without the usual port.
type origin struct {
	scheme string // with "://"
	host   string // and port; what follows the "*", if any
	suffix bool
	port   string // with suffix: ":" and digits, "" = the usual one
}

var errStar = errors.New(`"*" stands alone, or at the beginning of a host before a "."`)

// New compiles c.
func New(c Config) (*Rule, error) {
	r := &Rule{credentials: c.Credentials, maxAge: strconv.AppendInt(nil, DefaultMaxAge, 10)}
	if c.MaxAge > 0 {
		r.maxAge = strconv.AppendInt(nil, int64(c.MaxAge), 10)
	}
	for _, text := range c.Origins {
		if text == "*" {
			r.all = true
			continue
		}
		o, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("cannot allow origin %.200q: %w", text, err)
		}
		r.origins = append(r.origins, o)
	}
	var err error
	if r.methods, r.anyMethod, err = list(c.Methods); err != nil {
		return nil, fmt.Errorf("cannot allow methods: %w", err)
	}
	if r.headers, r.anyHeader, err = list(c.Headers); err != nil {
		return nil, fmt.Errorf("cannot allow headers: %w", err)
	}
	expose, all, err := list(c.Expose)
	if err != nil {
		return nil, fmt.Errorf("cannot expose headers: %w", err)
	}
	if all && !c.Credentials {
		expose = []byte("*")
	}
	r.expose = expose
	return r, nil
}

// parse reads an origin.
func parse(text string) (origin, error) {
	u, err := url.Parse(strings.ToLower(text))
	if err != nil {
		return origin{}, errors.New("it is no URL")
	}
	usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	if usual == "" || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return origin{}, errors.New("it is no scheme://host:port of http or https")
	}
	port := u.Port()
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) || strings.HasSuffix(u.Host, ":") {
		return origin{}, errors.New("ports are 1 to 65535")
	}
	if port == usual {
		port = ""
	}
	if port != "" {
		port = ":" + port
	}
	host := strings.TrimSuffix(u.Host, ":"+u.Port())
	o := origin{scheme: u.Scheme + "://", host: host + port}
	if rest, ok := strings.CutPrefix(host, "*"); ok {
		if rest != "" && rest[0] != '.' {
			return origin{}, errStar
		}
		o.host, o.suffix, o.port, host = rest, true, port, rest
	}
	if strings.Contains(host, "*") {
		return origin{}, errStar
	}
	return o, nil
}

// list joins tokens, and tells whether "*" is among them: then there is nothing to join.
func list(tokens []string) (joined []byte, all bool, err error) {
	for _, t := range tokens {
		if !field.IsToken(t) {
			return nil, false, fmt.Errorf("%.200q is no token", t)
		}
		if t == "*" {
			return nil, true, nil
		}
	}
	if len(tokens) == 0 {
		return nil, false, nil
	}
	return []byte(strings.Join(tokens, ", ")), false, nil
}
