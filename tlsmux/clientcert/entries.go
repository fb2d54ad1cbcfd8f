package clientcert

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"
)

// serials is a set of serial numbers, stored as sorted hashes with a secret seed, eight bytes each.
// In a set of a million, a number outside the set collides with a probability of 5e-14. Its
// certificate is then refused. The zero value is empty.
type serials struct {
	seed   maphash.Seed
	hashes []uint64
}

// has reports whether a serial number, in the form of big.Int.Bytes, is in the set.
func (s *serials) has(magnitude []byte) bool {
	if len(s.hashes) == 0 {
		return false
	}
	_, found := slices.BinarySearch(s.hashes, maphash.Bytes(s.seed, magnitude))
	return found
}

// removedFromList is the reason of an entry that takes a certificate off the list (RFC 5280
// section 5.3.1).
const removedFromList = 8

// minTime is the length of the shortest UTCTime, minEntry that of the shortest entry, with a
// serial number of one byte.
const minTime, minEntry = len("YYMMDDhhmmZ"), 2 + 3 + 2 + minTime

// oidReason is the extension of an entry with its reason (RFC 5280 section 5.3.1), as it is
// encoded.
var oidReason = []byte{0x55, 0x1d, 0x15}

// readEntries reads the certificates that a list revokes (RFC 5280 section 5.1.2.6). It supports no
// critical extension and returns an error for each.
func readEntries(entries der) (set serials, err error) {
	n := 0
	for rest := entries; len(rest) > 0; n++ {
		if _, ok := rest.take(tagSequence); !ok {
			return serials{}, errEncoding
		}
	}
	set = serials{maphash.MakeSeed(), make([]uint64, 0, min(n, len(entries)/minEntry+1))}
	for len(entries) > 0 {
		entry, _ := entries.take(tagSequence)
		serial, ok := entry.magnitude()
		if !ok || !entry.begins(tagUTCTime) && !entry.begins(tagGeneralizedTime) {
			return serials{}, errEncoding
		}
		if _, at, _, ok := entry.next(); !ok || len(at) < minTime {
			return serials{}, errEncoding
		}
		removed, err := removes(entry)
		if err != nil {
			return serials{}, err
		}
		if !removed {
			set.hashes = append(set.hashes, maphash.Bytes(set.seed, serial))
		}
	}
	slices.Sort(set.hashes)
	return set, nil
}

// removes reads the extensions of an entry, and reports whether it takes the certificate off the
// list.
func removes(rest der) (removed bool, err error) {
	if len(rest) == 0 {
		return false, nil
	}
	extensions, ok := rest.take(tagSequence)
	if !ok {
		return false, errEncoding
	}
	for len(extensions) > 0 {
		e, ok := extensions.take(tagSequence)
		if !ok {
			return false, errEncoding
		}
		id, ok := e.take(tagObject)
		if !ok {
			return false, errEncoding
		}
		if e.begins(tagBoolean) {
			if critical, ok := e.take(tagBoolean); !ok || len(critical) != 1 {
				return false, errEncoding
			} else if critical[0] != 0 {
				return false, fmt.Errorf("critical extension %x of an entry is not known", []byte(id))
			}
		}
		value, ok := e.take(tagOctets)
		if !ok || len(e) > 0 {
			return false, errEncoding
		}
		if bytes.Equal(id, oidReason) {
			reason, ok := value.take(tagEnumerated)
			if !ok || len(reason) == 0 {
				return false, errEncoding
			}
			removed = len(reason) == 1 && reason[0] == removedFromList
		}
	}
	return removed, nil
}
