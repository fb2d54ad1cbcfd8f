package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"

	"github.com/valyala/fasthttp"
)

// Login is who may see more than whether the router is alive. The zero value is everybody.
type Login struct {
	User, Password string
	// Review judges requests without user and password by their bearer token, "" = none: 200 lets them in, another status
	// refuses them with a text. nil: they are refused. It counts only when there is a user or password.
	Review func(ctx context.Context, token, method, path string) (status int, text string)
}

// admit lets a request in, or answers it.
func (l *Login) admit(ctx *fasthttp.RequestCtx) bool {
	if l.User == "" && l.Password == "" {
		return true
	}
	scheme, rest, _ := bytes.Cut(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization), []byte(" "))
	rest = bytes.TrimSpace(rest)
	if bytes.EqualFold(scheme, []byte("basic")) {
		if l.matches(rest) {
			return true
		}
	} else if l.Review != nil {
		token := ""
		if bytes.EqualFold(scheme, []byte("bearer")) {
			token = string(rest)
		}
		status, text := l.Review(ctx, token, string(ctx.Method()), string(ctx.Path()))
		if status == fasthttp.StatusOK {
			return true
		}
		ctx.Error(text+"\n", status)
		return false
	}
	ctx.Error("Unauthorized\n", fasthttp.StatusUnauthorized)
	ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, `Basic realm="router"`)
	return false
}

// matches compares credentials (RFC 7617 section 2). How long that takes does not tell how much of them was right.
func (l *Login) matches(encoded []byte) bool {
	given, err := base64.StdEncoding.DecodeString(string(encoded))
	if err != nil {
		return false
	}
	got, want := sha256.Sum256(given), sha256.Sum256([]byte(l.User+":"+l.Password))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
