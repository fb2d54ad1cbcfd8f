package main

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

// parseBool accepts the words the router we replace accepts.
func parseBool(s string) (bool, error) {
	switch s {
	case "1", "t", "T", "TRUE", "true", "True":
		return true, nil
	case "0", "f", "F", "FALSE", "false", "False":
		return false, nil
	}
	return false, errors.New("allowed: true or false")
}

// not is a parser of the opposite.
func not(parse func(string) (bool, error)) func(string) (bool, error) {
	return func(s string) (bool, error) {
		yes, err := parse(s)
		return !yes, err
	}
}

// maxTimespec is where longer times are cut: 2147483647 ms, about 24.8 days.
const maxTimespec = math.MaxInt32 * time.Millisecond

var timespecPattern = regexp.MustCompile(`^([1-9][0-9]*)(us|ms|s|m|h|d)?$`)

// parseTimespec reads a whole number with a unit; no unit means milliseconds.
// Zero, signs, decimals and compounds such as 1m30s are not in the grammar.
func parseTimespec(s string) (time.Duration, error) {
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

// parsePort reads a port that can be listened on; 0 lets the system choose.
func parsePort(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || strings.HasPrefix(s, "+") {
		return 0, errors.New("allowed: a port from 0 to 65535")
	}
	return int(n), nil
}

// parseListenAddr checks host:port, where host is empty (all addresses) or an IP
// address, and returns it in the form that net.JoinHostPort gives.
func parseListenAddr(s string) (string, error) {
	const allowed = "allowed: HOST:PORT, where HOST is an IP address, localhost or empty (every address) and PORT 0 to 65535"
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", errors.New(allowed)
	}
	if _, err := parsePort(port); err != nil {
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

// parseList splits at commas, trims each item and drops empty ones.
func parseList(s string) []string {
	var items []string
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// parsePrefixes reads a comma list of addresses and CIDRs.
func parsePrefixes(s string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, item := range parseList(s) {
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

// parseWord accepts exactly one of words.
func parseWord(s string, words ...string) (string, error) {
	if slices.Contains(words, s) {
		return s, nil
	}
	return "", fmt.Errorf("allowed: %s", strings.Join(words, ", "))
}

// parseThreads reads a number of event loops; 0 means one per processor.
func parseThreads(s string) (int, error) {
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

func parseCookieName(s string) (string, error) {
	if s != "" && !cookieNamePattern.MatchString(s) {
		return "", errors.New("allowed: letters, digits, _ and -")
	}
	return s, nil
}

// parseDNSName accepts an RFC 1123 subdomain that is not an IP address.
func parseDNSName(s string) (string, error) {
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
