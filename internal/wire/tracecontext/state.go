package tracecontext

import "turnout/internal/wire/field"

// Limits of a tracestate.
const (
	// MaxMembers is how many members a list has at most (section 3.3.1.1): a longer one is not passed on.
	MaxMembers = 32
	// MaxState is how many bytes of a list are passed on: as many as everybody has to (section 3.3.1.5).
	MaxState = 512
	// largeMember is the length above which members are the first to be left out of a list that is too long.
	largeMember = 128
	maxKey      = 256
	maxValue    = 256
)

// State is the tracestate of a request, which may stand on several lines. The zero value is an empty one. It refers to the lines.
type State struct {
	members [MaxMembers][]byte
	n       int
	size    int // in bytes, as one line
}

// AddLine adds the value of one line. false: the list breaks the grammar (section 3.3.1), and is of no use whatever else it says.
func (s *State) AddLine(v []byte) bool {
	for start := 0; start <= len(v); {
		end := start
		for end < len(v) && v[end] != ',' {
			end++
		}
		if member := field.Trim(v[start:end]); len(member) > 0 && !s.addMember(member) { // empty members are legal
			return false
		}
		start = end + 1
	}
	return true
}

// addMember adds one member, unless it breaks the grammar or there is one with its key.
func (s *State) addMember(m []byte) bool {
	key := keyOf(m)
	if key == nil || s.n == MaxMembers || !isValue(m[len(key)+1:]) {
		return false
	}
	for _, other := range s.members[:s.n] {
		if string(keyOf(other)) == string(key) {
			return false
		}
	}
	s.members[s.n] = m
	if s.n++; s.n > 1 {
		s.size++
	}
	s.size += len(m)
	return true
}

// Empty says that there is nothing to pass on.
func (s *State) Empty() bool { return s.n == 0 }

// Fits says that the list is passed on as it is.
func (s *State) Fits() bool { return s.size <= MaxState }

// Append appends the list as one line of at most MaxState bytes. What is too much is left out: long members first, and then the last ones, which
// are the oldest (section 3.3.1.5).
func (s *State) Append(b []byte) []byte {
	most := len(s.members[0])
	size := s.size
	for _, m := range s.members[:s.n] {
		most = max(most, len(m))
	}
	left := s.members // what is left out becomes nil
	for i := s.n - 1; i >= 0 && size > MaxState && most > largeMember; i-- {
		if len(left[i]) > largeMember {
			size -= len(left[i]) + 1
			left[i] = nil
		}
	}
	for i := s.n - 1; i >= 0 && size > MaxState; i-- {
		if left[i] != nil {
			size -= len(left[i]) + 1
			left[i] = nil
		}
	}
	first := true
	for _, m := range left[:s.n] {
		if m == nil {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, m...)
	}
	return b
}

// keyOf is what stands before "=" of a member (section 3.3.1.3.1), nil if that is no key.
func keyOf(m []byte) []byte {
	for i, c := range m {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case i > 0 && (c == '_' || c == '-' || c == '*' || c == '/' || c == '@'):
		case i > 0 && i <= maxKey && c == '=':
			return m[:i]
		default:
			return nil
		}
	}
	return nil
}

// isValue says that v is the value of a member (section 3.3.1.3.2); blanks around it are gone.
func isValue(v []byte) bool {
	if len(v) == 0 || len(v) > maxValue {
		return false
	}
	for _, c := range v {
		if c < ' ' || c > '~' || c == ',' || c == '=' {
			return false
		}
	}
	return true
}
