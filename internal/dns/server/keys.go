package server

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// Key is a shared secret by which messages are signed (TSIG, RFC 8945).
type Key struct {
	Name      string // in lower case, with a dot at its end
	Algorithm string // the same, such as "hmac-sha256."
	secret    string // in base64
}

// Keys are keys with different names. They must not be changed.
type Keys []Key

// find returns the key of a name, with or without a dot at its end.
func (k Keys) find(name string) (Key, bool) {
	name = dns.CanonicalName(name)
	for _, key := range k {
		if key.Name == name {
			return key, true
		}
	}
	return Key{}, false
}

// MaxKeys is how many keys there may be.
const MaxKeys = 256

// algorithms are those of RFC 8945 section 6, but for those that must or should not be used.
var algorithms = []string{dns.HmacSHA224, dns.HmacSHA256, dns.HmacSHA384, dns.HmacSHA512}

// ParseKeys reads keys as tsig-keygen of BIND writes them, and dig -k reads them:
//
//	key "NAME" {
//		algorithm hmac-sha256;
//		secret "BASE64";
//	};
//
// Comments begin with #, // or ;, or stand between /* and */.
func ParseKeys(text string) (Keys, error) {
	words, err := split(text)
	if err != nil {
		return nil, fmt.Errorf("cannot read TSIG keys: %w", err)
	}
	var keys Keys
	for len(words) > 0 {
		key, rest, err := readKey(words)
		if err != nil {
			return nil, fmt.Errorf("cannot read TSIG keys: %w", err)
		}
		if _, twice := keys.find(key.Name); twice {
			return nil, fmt.Errorf("cannot read TSIG keys: key %q is there twice", key.Name)
		}
		if keys, words = append(keys, key), rest; len(keys) > MaxKeys {
			return nil, fmt.Errorf("cannot read TSIG keys: more than %d", MaxKeys)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("cannot read TSIG keys: there is none")
	}
	return keys, nil
}

// readKey reads one key, and returns what follows it.
func readKey(words []string) (key Key, rest []string, err error) {
	if len(words) < 3 || words[0] != "key" || words[2] != "{" {
		return key, nil, errors.New(`a key does not begin with key "NAME" {`)
	}
	name := words[1]
	if _, ok := dns.IsDomainName(name); !ok || name == "" {
		return key, nil, fmt.Errorf("%q cannot be the name of a key", name)
	}
	key.Name = dns.CanonicalName(name)
	for words = words[3:]; ; words = words[3:] {
		if len(words) > 0 && words[0] == "}" {
			words = words[1:]
			break
		}
		if len(words) < 3 || words[2] != ";" {
			return key, nil, fmt.Errorf("key %q: it does not end", name)
		}
		switch words[0] {
		case "algorithm":
			if key.Algorithm = dns.CanonicalName(words[1]); !slices.Contains(algorithms, key.Algorithm) {
				return key, nil, fmt.Errorf("key %q: algorithm %q: allowed: %s", name, words[1], strings.ReplaceAll(strings.Join(algorithms, " "), ". ", ", "))
			}
		case "secret":
			if b, err := base64.StdEncoding.DecodeString(words[1]); err != nil || len(b) == 0 {
				return key, nil, fmt.Errorf("key %q: its secret is no base64", name)
			}
			key.secret = words[1]
		default:
			return key, nil, fmt.Errorf("key %q has something besides algorithm and secret", name)
		}
	}
	if key.Algorithm == "" || key.secret == "" {
		return key, nil, fmt.Errorf("key %q has no algorithm or no secret", name)
	}
	if len(words) > 0 && words[0] == ";" {
		words = words[1:]
	}
	return key, words, nil
}

// split returns the words of a text: braces and semicolons are words, quotes and comments are gone. A secret is never said in an error.
func split(text string) ([]string, error) {
	var words []string
	for {
		text = strings.TrimLeft(text, " \t\r\n")
		switch {
		case text == "":
			return words, nil
		case text[0] == '#' || strings.HasPrefix(text, "//"):
			_, text, _ = strings.Cut(text, "\n")
		case strings.HasPrefix(text, "/*"):
			_, rest, ok := strings.Cut(text, "*/")
			if !ok {
				return nil, errors.New("a comment does not end")
			}
			text = rest
		case text[0] == '"':
			word, rest, ok := strings.Cut(text[1:], `"`)
			if !ok {
				return nil, errors.New("a quote does not end")
			}
			words, text = append(words, word), rest
		case strings.ContainsRune("{};", rune(text[0])):
			words, text = append(words, text[:1]), text[1:]
		default:
			end := strings.IndexAny(text, " \t\r\n{};\"")
			if end < 0 {
				end = len(text)
			}
			words, text = append(words, text[:end]), text[end:]
		}
	}
}
