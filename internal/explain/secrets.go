package explain

import (
	"net/url"
	"slices"
	"strings"

	"turnout/internal/wire/field"
	"turnout/proxy"
)

// secretNames are parts of the names of fields whose values nobody is shown.
var secretNames = []string{"authorization", "cookie", "token", "secret", "password", "credential", "api-key", "apikey", "x-ssl-client-der"}

// hidden stands for a secret.
const hidden = "REDACTED"

// shown is a field for people. Of cookies the names are shown.
func shown(f field.Field) string {
	name, value := string(f.Name), string(f.Value)
	switch {
	case name == "cookie" || name == "set-cookie":
		value = cookieNames(value, name == "cookie")
	case slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(name, part) }):
		value = hidden
	}
	return name + ": " + value
}

// cookieNames replaces the values of cookies, all of them or of the first pair only, behind which there are attributes.
func cookieNames(value string, all bool) string {
	pairs := strings.Split(value, ";")
	for i, pair := range pairs {
		name, _, ok := strings.Cut(pair, "=")
		if ok && (all || i == 0) {
			pairs[i] = name + "=" + hidden
		}
	}
	return strings.Join(pairs, ";")
}

func fieldsOf(h *proxy.Head) []string {
	all := make([]string, 0, len(h.Fields))
	for _, f := range h.Fields {
		all = append(all, shown(f))
	}
	return all
}

// redacted is a target or URL without the values of its query parameters.
func redacted(target string) string {
	path, query, ok := strings.Cut(target, "?")
	if !ok {
		return target
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		if name, value, ok := strings.Cut(pair, "="); ok && value != "" {
			pairs[i] = name + "=" + url.QueryEscape(hidden)
		}
	}
	return path + "?" + strings.Join(pairs, "&")
}
