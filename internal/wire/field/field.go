// Package field holds the one representation of a header or trailer field that
// every codec and the pipeline share.
package field

// Field is one field line. Name is lower-case; Value has no surrounding blanks.
// Both are views into memory of the package that parsed or built the message: who keeps a
// Field longer than that message copies it. Order and repetition of fields in a
// list are part of the message.
type Field struct {
	Name, Value []byte
}

// Index is the position of the first field called name (lower-case), or -1.
func Index(fields []Field, name string) int {
	for i := range fields {
		if string(fields[i].Name) == name {
			return i
		}
	}
	return -1
}

// Get is the value of the first field called name (lower-case), nil when there is
// none. The empty value of a parsed field is not nil.
func Get(fields []Field, name string) []byte {
	if i := Index(fields, name); i >= 0 {
		return fields[i].Value
	}
	return nil
}

// Delete removes every field called name (lower-case) in place and returns the
// shortened list. The others keep their order.
func Delete(fields []Field, name string) []Field {
	first := Index(fields, name)
	if first < 0 {
		return fields
	}
	kept := fields[:first]
	for _, f := range fields[first+1:] {
		if string(f.Name) != name {
			kept = append(kept, f)
		}
	}
	clear(fields[len(kept):])
	return kept
}

// Trim cuts the blanks (SP and HTAB, RFC 9110 section 5.6.3) around v off.
func Trim(v []byte) []byte {
	for len(v) > 0 && (v[0] == ' ' || v[0] == '\t') {
		v = v[1:]
	}
	for len(v) > 0 && (v[len(v)-1] == ' ' || v[len(v)-1] == '\t') {
		v = v[:len(v)-1]
	}
	return v
}

// UpperBits sets the top bit of each byte of x that is an upper-case letter.
func UpperBits(x uint64) uint64 {
	const each = 0x0101010101010101
	low := x & (0x7f * each)
	fromA := low + (0x80-'A')*each    // top bit: at or above 'A'
	aboveZ := low + (0x80-'Z'-1)*each // top bit: above 'Z'
	return fromA &^ aboveZ &^ x & (0x80 * each)
}
