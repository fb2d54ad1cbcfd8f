package tracing

import (
	"net/url"
	"strings"
)

// redacted stands in the place of values that may be secrets, as the semantic conventions ask for.
const redacted = "REDACTED"

// secretWords are in names of query parameters whose values may be secrets, and secretNames are such names.
var (
	secretWords = []string{"token", "secret", "passw", "signature", "credential", "session", "apikey", "accesskey", "authorization"}
	secretNames = map[string]bool{"sig": true, "code": true, "key": true, "auth": true, "jwt": true, "ticket": true, "assertion": true, "pwd": true, "sid": true, "samlresponse": true, "samlrequest": true}
)

// redact replaces the values of a query that may be secrets.
func redact(query string) string {
	var b strings.Builder
	for rest, more := query, query != ""; more; {
		var pair string
		pair, rest, more = strings.Cut(rest, "&")
		if name, _, ok := strings.Cut(pair, "="); ok && secret(name) {
			pair = name + "=" + redacted
		}
		if b.WriteString(pair); more {
			b.WriteByte('&')
		}
	}
	return b.String()
}

// secret says that the value of this parameter may be one, by its name however that is written.
func secret(name string) bool {
	if plain, err := url.QueryUnescape(name); err == nil {
		name = plain
	}
	name = strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.ToLower(name))
	for _, word := range secretWords {
		if strings.Contains(name, word) {
			return true
		}
	}
	return secretNames[name]
}
