package tlsmux

import (
	"maps"
	"slices"
	"strings"
)

// cipher is a suite of TLS 1.2 and before as the cipher lists of OpenSSL see it (ciphers(1)).
type cipher struct {
	name  string
	id    uint16 // 0 = crypto/tls does not have it
	words []string
}

// lackingSuites are those that keywords are mostly meant to select and crypto/tls does not have.
var lackingSuites = []string{
	"DHE-RSA-AES256-GCM-SHA384", "DHE-RSA-CHACHA20-POLY1305", "DHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-SHA384", "ECDHE-RSA-AES256-SHA384",
	"DHE-RSA-AES256-SHA256", "DHE-RSA-AES128-SHA256", "DHE-RSA-AES256-SHA", "DHE-RSA-AES128-SHA", "AES256-SHA256",
	"ECDHE-ECDSA-DES-CBC3-SHA", "EDH-RSA-DES-CBC3-SHA",
}

// otherWords are keywords and names that select nothing crypto/tls has. To exclude them is no mistake.
const otherWords = " COMPLEMENTOFALL aNULL eNULL NULL EXPORT EXP EXPORT40 EXPORT56 LOW DES RC2 RC4 IDEA SEED MD5 CAMELLIA CAMELLIA128 CAMELLIA256" +
	" ARIA ARIA128 ARIA256 ARIAGCM AESCCM AESCCM8 ADH AECDH aDH aECDH kDH kDHr kDHd kECDH kECDHr kECDHe aDSS DSS PSK kPSK aPSK RSAPSK kRSAPSK" +
	" kDHEPSK kECDHEPSK SRP kSRP aSRP KRB5 kKRB5 aKRB5 GOST89 GOST89MAC GOST94 kGOST aGOST aGOST01 aGOST12 FZA kFZA aFZA eFZA" +
	" EDH-DSS-DES-CBC3-SHA KRB5-DES-CBC3-SHA "

// allCiphers are the suites that a list can select, the preferred first.
func allCiphers() []cipher {
	var all []cipher
	for _, id := range slices.Concat(modernSuites, moreIntermediateSuites, moreOldSuites) {
		name := SuiteName(id)
		all = append(all, cipher{name, id, cipherWords(name)})
	}
	for _, name := range lackingSuites {
		all = append(all, cipher{name, 0, cipherWords(name)})
	}
	return all
}

// cipherWords are the keywords that select a suite, besides ALL: they follow from its name.
func cipherWords(name string) (words []string) {
	add := func(text string) { words = append(words, strings.Fields(text)...) }
	rest, ephemeral := name, true
	switch {
	case cutPrefix(&rest, "ECDHE-ECDSA-"):
		add("kECDHE kEECDH ECDHE EECDH ECDH aECDSA ECDSA")
	case cutPrefix(&rest, "ECDHE-RSA-"):
		add("kECDHE kEECDH ECDHE EECDH ECDH aRSA")
	case cutPrefix(&rest, "DHE-RSA-"), cutPrefix(&rest, "EDH-RSA-"):
		add("kDHE kEDH DHE EDH DH aRSA")
		ephemeral = false // its oldest suites are those of SSL 3
	default:
		add("kRSA RSA aRSA")
		ephemeral = false
	}
	kind, digest, _ := strings.Cut(rest, "-")
	old := digest == "SHA" || kind == "DES"
	switch kind {
	case "DES":
		add("3DES MEDIUM COMPLEMENTOFDEFAULT")
	case "CHACHA20":
		add("CHACHA20 HIGH DEFAULT")
	default:
		add(kind + " AES HIGH DEFAULT")
	}
	switch {
	case strings.HasPrefix(digest, "GCM-"):
		add("AESGCM")
	case old:
		add("SHA SHA1")
	case kind != "CHACHA20":
		add(digest)
	}
	switch {
	case !old:
		add("TLSv1.2")
	case ephemeral:
		add("TLSv1 TLSv1.0")
	default:
		add("SSLv3")
	}
	return words
}

func cutPrefix(s *string, prefix string) (found bool) {
	*s, found = strings.CutPrefix(*s, prefix)
	return found
}

// selects tells whether an item of a list, keywords joined by +, means the suite.
func (c *cipher) selects(item string) bool {
	if item == c.name {
		return true
	}
	for word := range strings.SplitSeq(item, "+") {
		if word != "ALL" && word != c.name && !slices.Contains(c.words, word) {
			return false
		}
	}
	return true
}

// cipherList carries out a cipher list of OpenSSL: items that add suites, - and ! that take them away, the latter for good.
// What orders them (+ in front, @STRENGTH) has no effect, because crypto/tls has an order of its own. unknown are the items
// that add nothing crypto/tls has, and those that nobody knows.
func cipherList(text string) (chosen []cipher, unknown []string) {
	all := allCiphers()
	banned := map[string]bool{}
	items := strings.FieldsFunc(strings.ReplaceAll(text, "@", ":@"), func(r rune) bool { return strings.ContainsRune(":,; ", r) })
	for i, item := range items {
		word := strings.TrimLeft(item, "!-+")
		sign := item[:len(item)-len(word)]
		if id, ok := suiteNamed(word); ok {
			word = SuiteName(id) // also by its name of IANA
		}
		meant := map[string]bool{}
		ours := false
		for _, c := range all {
			if c.selects(word) && (word != "DEFAULT" || i == 0 && sign == "") { // elsewhere it means nothing to OpenSSL
				meant[c.name] = true
				ours = ours || c.id != 0
			}
		}
		among := func(c cipher) bool { return meant[c.name] }
		switch {
		case item == "@STRENGTH":
		case sign == "" && !ours, sign != "" && len(meant) == 0 && !known(word):
			unknown = append(unknown, item)
		case sign == "":
			for _, c := range all {
				if meant[c.name] && !banned[c.name] && !slices.ContainsFunc(chosen, func(o cipher) bool { return o.name == c.name }) {
					chosen = append(chosen, c)
				}
			}
		case sign == "!":
			maps.Copy(banned, meant)
			chosen = slices.DeleteFunc(chosen, among)
		case sign == "-":
			chosen = slices.DeleteFunc(chosen, among)
		}
	}
	return chosen, unknown
}

// known tells whether OpenSSL has each word of an item.
func known(item string) bool {
	for word := range strings.SplitSeq(item, "+") {
		has := func(c cipher) bool { return c.selects(word) }
		if !strings.Contains(otherWords, " "+word+" ") && !slices.ContainsFunc(allCiphers(), has) {
			return false
		}
	}
	return true
}
