package reactor

// Splice is a running kernel copy from one Conn to another.
type Splice struct{ bytes uint64 }

// Splice copies everything from src to dst.
func (l *Loop) Splice(src, dst *Conn, done func(s *Splice, err error)) (*Splice, error) {
	panic("not yet")
}

// Bytes is how many bytes dst's socket took.
func (s *Splice) Bytes() uint64 { return s.bytes }
