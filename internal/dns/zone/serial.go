package zone

import "time"

// FirstSerial is the serial of a zone of which no earlier one is known: the time in seconds since 1970.
func FirstSerial(now time.Time) uint32 { return uint32(now.Unix()) }

// NextSerial is the serial of a zone that has changed, after last: the time, so that a server that has forgotten its serials goes on, or last
// and one if the time is not after it, as after two changes within a second or when the clock was set back.
func NextSerial(last uint32, now time.Time) uint32 {
	if t := FirstSerial(now); After(t, last) {
		return t
	}
	return last + 1
}

// After reports whether the serial a is later than b (RFC 1982 section 3.2). Of two that are 2³¹ apart neither is.
func After(a, b uint32) bool {
	distance := a - b
	return distance != 0 && distance < 1<<31
}
