package ticketkeys

import (
	"crypto/rand"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// RotatedAnnotation says when the contents of a Secret were replaced last (RFC 3339). A Secret with contents and without it is somebody else's to replace.
const RotatedAnnotation = "turnout.router/rotated"

// The keys of the Secret. Current makes new tickets; the others are tried too. What is next today is current after the next rotation, so that every replica has
// it for a whole rotation before any ticket is made with it.
const (
	Current  = "current"
	Next     = "next"
	Previous = "previous"
)

// secretBytes is the length of what is made.
const secretBytes = 48

// due is when the contents of s are to be replaced, and whether that is for routers to do. A time further ahead than a whole rotation was written by a clock that is wrong,
// or is no time: then it is due at once.
func due(s *corev1.Secret, every time.Duration, now time.Time) (time.Time, bool) {
	text, own := s.Annotations[RotatedAnnotation]
	if !own {
		return now, len(s.Data) == 0
	}
	rotated, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || len(s.Data[Current]) < secretBytes || len(s.Data[Next]) < secretBytes || rotated.Sub(now) > every {
		return now, true
	}
	return rotated.Add(every), true
}

// rotate replaces the contents of s, which is changed.
func rotate(s *corev1.Secret, now time.Time) {
	data := map[string][]byte{Current: s.Data[Next], Next: fresh()}
	if len(data[Current]) < secretBytes {
		data[Current] = fresh()
	}
	if old := s.Data[Current]; len(old) >= secretBytes {
		data[Previous] = old
	}
	s.Data = data
	if s.Annotations == nil {
		s.Annotations = make(map[string]string)
	}
	s.Annotations[RotatedAnnotation] = now.UTC().Format(time.RFC3339Nano)
}

func fresh() []byte {
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // never fails
	return b
}

// Error says what is wrong with the Secret, as operators are to read it.
type Error struct {
	Namespace, Name string
	Err             error
}

func (e *Error) Error() string { return fmt.Sprintf("Secret %s/%s: %v", e.Namespace, e.Name, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
