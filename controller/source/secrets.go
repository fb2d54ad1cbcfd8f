package source

import "strings"

// Secrets delivers the secrets that routes refer to, and no others, to the sink of the
// feeder it belongs to. Its methods never block.
type Secrets interface {
	// Watch begins to deliver a secret. At least one event follows: with the object,
	// without one if there is none, or with Err if it may not be read. Watching what is
	// watched already changes nothing.
	Watch(key Key)
	// Again tells that a route that refers to the secret has changed: what was refused is worth another question. Of what is not
	// watched it is nothing.
	Again(key Key)
	// Forget ends what Watch began. An event that is on its way may still arrive, but
	// never after one of a later Watch.
	Forget(key Key)
}

// DeniedError is the Err of an event about a secret that the router has no permission
// to read. Any other Err is taken for a failure that may pass.
type DeniedError struct {
	Verbs []string // what is not permitted, of get, watch and list
}

// Error returns the missing permissions as one text.
func (e *DeniedError) Error() string {
	return "router serviceaccount does not have permission to " + strings.Join(e.Verbs, ", ") + " this secret"
}
