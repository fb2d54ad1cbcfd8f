package field

import "bytes"

// Schemes that authenticate a connection and not a request: NTLM, Negotiate with its extension
// Nego2 (RFC 4559, MS-N2HT) and their older names, and CredSSP of WinRM (MS-WSMV section
// 2.2.9.1.3). A scheme counts if it begins with one of these words, in any case of letters.
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

// AboutAuthentication reports whether a field has credentials or a challenge. Trailers have none
// (RFC 9110 section 6.5.1): what decides whose a connection is stands in heads.
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

// ChallengesConnection reports whether a response has a challenge of such a scheme, or says that
// the authentication of its connection persists (Persistent-Auth of IIS). continues: the challenge
// answers a step of a login, whose next step it expects.
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

// hasToken reports whether a challenge is a scheme and a token, and no list.
func hasToken(value []byte) bool {
	_, token, _ := bytes.Cut(value, []byte(" "))
	return len(Trim(token)) > 0 && bytes.IndexByte(value, ',') < 0
}

// hasConnectionScheme reports whether a member of a comma-separated list begins with a connection
// scheme. A comma within a quoted string counts as well: a connection that is private without need
// costs less than one that is shared. Bytes that no scheme can begin with are skipped, because
// servers differ in the blanks that they trim.
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

// hasPrefixFold reports whether p, which is as long at least, begins with a lower-case word, in
// any case of letters.
func hasPrefixFold(p []byte, word string) bool {
	for i := range len(word) {
		if p[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}
