package option

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The grammars of option values. Each parser returns an error that says what is
// allowed and nothing else: the caller names the option and the value.

// ParseBool accepts the words the HAProxy router accepts.
func ParseBool(s string) (bool, error) {
	switch s {
	case "1", "t", "T", "TRUE", "true", "True":
		return true, nil
	case "0", "f", "F", "FALSE", "false", "False":
		return false, nil
	}
	return false, errors.New("allowed: true or false")
}

// Not is a parser of the opposite.
func Not(parse func(string) (bool, error)) func(string) (bool, error) {
	return func(s string) (bool, error) {
		yes, err := parse(s)
		return !yes, err
	}
}

// maxTimespec is where longer times are cut: 2147483647 ms, about 24.8 days.
const maxTimespec = math.MaxInt32 * time.Millisecond

var timespecPattern = regexp.MustCompile(`^([1-9][0-9]*)(us|ms|s|m|h|d)?$`)

// ParseTimespec reads a whole number with a unit; no unit means milliseconds.
// Zero, signs, decimals and compounds such as 1m30s are not in the grammar.
func ParseTimespec(s string) (time.Duration, error) {
	m := timespecPattern.FindStringSubmatch(s)
	if m == nil {
		return 0, errors.New("allowed: a whole number above 0 with one of the units us, ms, s, m, h, d (no unit: ms), for example 30s")
	}
	unit := map[string]time.Duration{
		"us": time.Microsecond, "": time.Millisecond, "ms": time.Millisecond, "s": time.Second,
		"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
	}[m[2]]
	if n, err := strconv.ParseInt(m[1], 10, 64); err == nil && n <= int64(maxTimespec/unit) {
		return time.Duration(n) * unit, nil
	}
	return maxTimespec, nil // more digits than an int64 holds, too
}

// ParsePort reads a port that can be listened on; 0 lets the system choose.
func ParsePort(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || strings.HasPrefix(s, "+") {
		return 0, errors.New("allowed: a port from 0 to 65535")
	}
	return int(n), nil
}

// ParseListenAddr checks host:port, where host is empty (all addresses) or an IP
// address, and returns it in the form that net.JoinHostPort gives.
func ParseListenAddr(s string) (string, error) {
	const allowed = "allowed: HOST:PORT, where HOST is an IP address, localhost or empty (every address) and PORT 0 to 65535"
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", errors.New(allowed)
	}
	if _, err := ParsePort(port); err != nil {
		return "", errors.New(allowed)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	if host != "" {
		if _, err := netip.ParseAddr(host); err != nil {
			return "", errors.New(allowed)
		}
	}
	return net.JoinHostPort(host, port), nil
}

// ParseList splits at commas, trims each item and drops empty ones.
func ParseList(s string) []string {
	var items []string
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// ParsePrefixes reads a comma list of addresses and CIDRs.
func ParsePrefixes(s string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, item := range ParseList(s) {
		p, err := netip.ParsePrefix(item)
		if err != nil {
			a, err := netip.ParseAddr(item)
			if err != nil || a.Zone() != "" {
				return nil, errors.New("allowed: IP addresses and CIDRs such as 10.0.0.0/8, separated by commas")
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

// ParseWord accepts exactly one of words.
func ParseWord(s string, words ...string) (string, error) {
	if slices.Contains(words, s) {
		return s, nil
	}
	return "", fmt.Errorf("allowed: %s", strings.Join(words, ", "))
}

// ParseThreads reads a number of event loops; 0 means one per processor.
func ParseThreads(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n > 1024 {
		return 0, errors.New("allowed: a whole number from 0 (one loop per processor) to 1024")
	}
	return int(n), nil
}

var (
	cookieNamePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	dnsNamePattern    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// ParseCookieName accepts what can be the name of a cookie, and none.
func ParseCookieName(s string) (string, error) {
	if s != "" && !cookieNamePattern.MatchString(s) {
		return "", errors.New("allowed: letters, digits, _ and -")
	}
	return s, nil
}

// ParseDNSName accepts an RFC 1123 subdomain that is not an IP address.
func ParseDNSName(s string) (string, error) {
	const allowed = "allowed: a lower-case DNS name such as router.example.com, not an IP address"
	if s == "" {
		return "", nil
	}
	if len(s) > 253 || !dnsNamePattern.MatchString(s) {
		return "", errors.New(allowed)
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return "", errors.New(allowed)
	}
	return s, nil
}

// ParseText accepts any text.
func ParseText(s string) (string, error) { return s, nil }

// ParseDelay reads a Go duration that is not negative.
func ParseDelay(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, errors.New("allowed: a Go duration such as 45s or 1m30s, not negative")
	}
	return d, nil
}

// ParseInterval reads a Go duration above zero.
func ParseInterval(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, errors.New("allowed: a Go duration above 0 such as 30m or 1h30m")
	}
	return d, nil
}

// ParseSeconds reads a whole number of seconds from 1 on.
func ParseSeconds(s string) (time.Duration, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || n == 0 || strings.HasPrefix(s, "+") {
		return 0, errors.New("allowed: a whole number of seconds from 1 on")
	}
	return time.Duration(n) * time.Second, nil
}

// ParseMebibytes reads a number of MiB and returns bytes.
func ParseMebibytes(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n > 1<<20 {
		return 0, errors.New("allowed: a number of MiB up to 1048576")
	}
	return int(n) << 20, nil
}

// ParseConnections reads a number of connections; 0 is no bound.
func ParseConnections(s string) (int, error) {
	if s == "auto" {
		return 0, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, errors.New("allowed: a whole number, or auto")
	}
	return max(n, 0), nil
}

// ParsePercent reads a whole number from 1 to 100.
func ParsePercent(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 100 || strings.HasPrefix(s, "+") {
		return 0, errors.New("allowed: a whole number from 1 to 100")
	}
	return n, nil
}

// ParseBytes reads a number of bytes that is kept in memory per message.
func ParseBytes(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || n == 0 || n > 1<<20 {
		return 0, errors.New("allowed: a number of bytes from 1 to 1048576")
	}
	return int(n), nil
}

// Unquote takes the double quotes off that an operator puts around a format.
func Unquote(s string) (string, error) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s, nil
	}
	plain, err := strconv.Unquote(s)
	if err != nil {
		return "", fmt.Errorf("cannot read the quoted text: %w", err)
	}
	return plain, nil
}

// Quoted reads a text that an operator may deliver in double quotes. check returns why it is not allowed.
func Quoted(check func(string) error) func(string) (string, error) {
	return func(s string) (string, error) {
		s, err := Unquote(s)
		if err == nil {
			err = check(s)
		}
		return s, err
	}
}

// Checked reads a text. check returns why it is not allowed.
func Checked(check func(string) error) func(string) (string, error) {
	return func(s string) (string, error) { return s, check(s) }
}

// ParseAddr reads an address.
func ParseAddr(s string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		err = errors.New("allowed: an address of IPv4 or IPv6")
	}
	return addr, err
}

// ParseTypes reads media types separated by blanks and returns them without their
// parameters. One with blanks in it is in double quotes, as the operator writes it.
func ParseTypes(s string) (string, error) {
	errTypes := errors.New("allowed: media types separated by blanks, such as text/html text/css")
	var types []string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		end := strings.IndexAny(s+" ", " \t")
		word := s[:end]
		if s[0] == '"' {
			quoted, err := strconv.QuotedPrefix(s)
			if err != nil {
				return "", errTypes
			}
			end = len(quoted)
			if word, err = strconv.Unquote(quoted); err != nil {
				return "", errTypes
			}
		}
		s = s[end:]
		word, _, _ = strings.Cut(word, ";")
		word = strings.TrimSpace(word)
		if kind, sub, ok := strings.Cut(word, "/"); !ok || kind == "" || sub == "" || strings.ContainsAny(word, ", \t\"") {
			return "", errTypes
		}
		types = append(types, word)
	}
	return strings.Join(types, " "), nil
}
