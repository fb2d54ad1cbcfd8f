package translate

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// The errors of ParseTimespec.
var (
	ErrTimespecSyntax = errors.New("is not a whole number above 0 with one of the units us, ms, s, m, h, d")
	ErrTimespecRange  = errors.New("is too long")
)

// MaxTimespec is the longest time of an annotation: 2147483647 ms.
const MaxTimespec = math.MaxInt32 * time.Millisecond

// ParseTimespec returns the time of a text such as "30s": a whole number without
// leading zero, and a unit, which is ms if there is none. The error is
// ErrTimespecSyntax or ErrTimespecRange.
func ParseTimespec(s string) (time.Duration, error) {
	digits := 0
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	if digits == 0 || s[0] == '0' {
		return 0, ErrTimespecSyntax
	}
	var unit time.Duration
	switch s[digits:] {
	case "us":
		unit = time.Microsecond
	case "ms", "":
		unit = time.Millisecond
	case "s":
		unit = time.Second
	case "m":
		unit = time.Minute
	case "h":
		unit = time.Hour
	case "d":
		unit = 24 * time.Hour
	default:
		return 0, ErrTimespecSyntax
	}
	n, err := strconv.ParseInt(s[:digits], 10, 64)
	if err != nil || n > math.MaxInt64/int64(unit) {
		return 0, ErrTimespecRange
	}
	return time.Duration(n) * unit, nil
}

// ClipTimespec returns the time of an annotation: at most MaxTimespec. The bool is
// false when the text is no time.
func ClipTimespec(s string) (time.Duration, bool) {
	d, err := ParseTimespec(s)
	switch {
	case errors.Is(err, ErrTimespecRange):
		return MaxTimespec, true
	case err != nil:
		return 0, false
	}
	return min(d, MaxTimespec), true
}
