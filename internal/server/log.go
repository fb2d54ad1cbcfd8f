package server

// Level is how important a line of the log is.
type Level uint8

// The levels, the least important first.
const (
	Info Level = iota
	Warning
	Error
)

// Field is one thing that a line of the log says besides its text.
type Field struct {
	Key   string
	Value any // a number, a string, an error, a time.Duration or a fmt.Stringer
}

// Logger writes one line. Any goroutine may call it, event loops too: it must not wait for the reader of the log.
type Logger func(level Level, text string, fields ...Field)
