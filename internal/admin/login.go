package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

// Asked is who is asked for a login.
type Asked uint8

// Who can be asked.
const (
	AskWithUser Asked = iota // everybody, if there is a user or password; else nobody
	AskRemote                // just so, but without a user and password everybody who does not come from a loopback address
	AskAll                   // everybody
	AskNobody                // nobody
)

// Login is who may see more than whether the router is alive. The zero value is everybody.
type Login struct {
	User, Password string // both "" = nobody has them
	// Review judges requests without user and password by the source they come from, an address or network, and their bearer token,
	// "" = none: 200 lets them in, another status refuses them with a text. nil: they are refused.
	Review func(ctx context.Context, source, token, method, path string) (status int, text string)
	Asked  Asked
}

func (l *Login) hasUser() bool { return l.User != "" || l.Password != "" }

// asks reports whether a visitor is asked for a login.
func (l *Login) asks(source netip.Prefix) bool {
	switch l.Asked {
	case AskAll:
		return true
	case AskNobody:
		return false
	case AskRemote:
		return l.hasUser() || !source.Addr().IsLoopback()
	}
	return l.hasUser()
}

// admit lets a request in, or answers it. known: it has shown a user and password, or a token, which no page of another site has.
func (l *Login) admit(w http.ResponseWriter, r *http.Request, source netip.Prefix) (in, known bool) {
	if !l.asks(source) {
		return true, false
	}
	scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	rest = strings.TrimSpace(rest)
	if strings.EqualFold(scheme, "basic") {
		if l.matches(rest) {
			return true, true
		}
	} else if l.Review != nil {
		token := ""
		if strings.EqualFold(scheme, "bearer") {
			token = rest
		}
		status, text := l.Review(r.Context(), source.String(), token, r.Method, r.URL.Path)
		if status == http.StatusOK {
			return true, token != ""
		}
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		}
		say(w, status, text+"\n")
		return false, false
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="router"`)
	say(w, http.StatusUnauthorized, "Unauthorized\n")
	return false, false
}

// matches compares credentials (RFC 7617 section 2). How long that takes does not tell how much of them was right.
func (l *Login) matches(encoded string) bool {
	given, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !l.hasUser() {
		return false
	}
	got, want := sha256.Sum256(given), sha256.Sum256([]byte(l.User+":"+l.Password))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
