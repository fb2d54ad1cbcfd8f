// Package option is options of a program as a table: how each is called on the command line and in the environment, what it accepts,
// and where its value goes. It reads neither; flags win over the environment, and that over defaults.
package option

import "fmt"

// UsageError is a mistake in the command line or the environment: one line.
type UsageError struct{ text string }

func (e UsageError) Error() string { return e.text }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Sprintf(format, args...)} }

// Environment looks a variable up as os.LookupEnv does. Empty is the same as unset.
type Environment func(name string) (string, bool)

// Get returns the value of name, "" when it is unset.
func (e Environment) Get(name string) string {
	v, _ := e(name)
	return v
}

// Option is one option: how it is called, what it accepts, where it goes.
type Option struct {
	Flag  string // without dashes
	Short string // another name of the flag, "" for none
	Env   string // "" when only the flag exists
	Def   string // "" leaves the zero value of where it goes
	// EnvStops says that a bad value in the environment stops the start. Otherwise
	// it is ignored with a warning, as the HAProxy router ignores it silently.
	EnvStops bool
	IsBool   bool
	Repeats  bool   // may be given several times: each value is set
	Group    string // what the help lists it under, such as "Timeouts"; "" = nothing
	Value    string // what the help calls the value
	Help     string
	Set      func(v string) error // the error says what is allowed
	// SetSaid is Set for what a source below the environment says, see Said; nil = Set is.
	SetSaid func(s *Said) error
	Secret  bool // its value is not shown to people
}
