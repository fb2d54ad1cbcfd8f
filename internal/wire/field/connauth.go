package field

import "bytes"

// Schemes that authenticate a connection instead of a request: NTLM, Negotiate with its extension
// Nego2 (RFC 4559, MS-N2HT) and their older names, and CredSSP of WinRM (MS-WSMV section
// 2.2.9.1.3). A scheme matches if it begins with one of these words, in any letter case.
var connectionSchemes = [...]string{"ntlm", "nego", "kerberos", "gss-", "credssp"}

// AuthenticatesConnection reports whether a request has credentials of a scheme that authenticates
// its connection, and whether these continue a login: they are no first message of NTLM (MS-NLMP
// section 2.2.1.1) or SPNEGO (RFC 4178 section 4.2).
func AuthenticatesConnection(fields []Field) (authenticates, continues bool) {
	for i := range fields {
		f := &fields[i]
		switch len(f.Name) {
		case len("authorization"):
			if string(f.Name) != "authorization" {
				continue
			}
		case len("proxy-authorization"):
			if string(f.Name) != "proxy-authorization" {
				continue
			}
		default:
			continue
		}
		if hasConnectionScheme(f.Value) {
			return true, !beginsLogin(f.Value)
		}
	}
	return false, false
}

// AboutAuthentication reports whether a field has credentials or a challenge. Trailers must not
// have any (RFC 9110 section 6.5.1), because only heads decide about the owner of a connection.
func AboutAuthentication(name []byte) bool {
	switch string(name) {
	case "authorization", "proxy-authorization", "www-authenticate", "proxy-authenticate", "persistent-auth":
		return true
	}
	return false
}

// beginsLogin reports whether credentials hold the first message of a login, in base64.
func beginsLogin(value []byte) bool {
	at := bytes.LastIndexByte(value, ' ')
	token := value[at+1:]
	return at < 0 || bytes.HasPrefix(token, []byte("TlRMTVNTUAAB")) || bytes.HasPrefix(token, []byte("Y"))
}

// ChallengesConnection reports whether a response has a challenge of such a scheme, or announces
// that the authentication of its connection persists (Persistent-Auth of IIS). continues means that
// the challenge answers a step of a login and expects the next step.
func ChallengesConnection(fields []Field) (challenges, continues bool) {
	for i := range fields {
		f := &fields[i]
		switch string(f.Name) {
		case "www-authenticate", "proxy-authenticate":
			if hasConnectionScheme(f.Value) {
				challenges = true
				continues = continues || hasToken(f.Value)
			}
		case "persistent-auth":
			challenges = true
		}
	}
	return challenges, continues
}

// hasToken reports whether a challenge is one scheme with a token, not a list.
func hasToken(value []byte) bool {
	_, token, _ := bytes.Cut(value, []byte(" "))
	return len(Trim(token)) > 0 && bytes.IndexByte(value, ',') < 0
}

// hasConnectionScheme reports whether a member of a comma-separated list begins with a connection
// scheme. It counts commas within quoted strings as well: a needlessly private connection costs
// less than a wrongly shared one. It skips bytes that no scheme begins with, because servers trim
// different blanks.
func hasConnectionScheme(value []byte) bool {
	for {
		for len(value) > 0 && (value[0] <= '"' || value[0] >= 0x7f) {
			value = value[1:]
		}
		if isConnectionScheme(value) {
			return true
		}
		comma := bytes.IndexByte(value, ',')
		if comma < 0 {
			return false
		}
		value = value[comma+1:]
	}
}

// isConnectionScheme reports whether p begins with the name of a connection scheme.
func isConnectionScheme(p []byte) bool {
	if len(p) == 0 {
		return false
	}
	switch p[0] | 0x20 {
	case 'n', 'k', 'g', 'c':
	default:
		return false
	}
	for _, scheme := range connectionSchemes {
		if len(p) >= len(scheme) && hasPrefixFold(p, scheme) {
			return true
		}
	}
	return false
}

// hasPrefixFold reports whether p begins with a lower-case word, in any letter case. p must be at
// least as long as the word.
func hasPrefixFold(p []byte, word string) bool {
	for i := range len(word) {
		if p[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}
