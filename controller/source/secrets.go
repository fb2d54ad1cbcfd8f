package source

// Secrets delivers the secrets that routes refer to, and no others, to the sink of the
// feeder it belongs to. Its methods never block.
type Secrets interface {
	// Watch begins to deliver a secret. At least one event follows: with the object,
	// without one if there is none, or with Err if it may not be read. Watching what is
	// watched already changes nothing.
	Watch(key Key)
	// Forget ends what Watch began. An event that is on its way may still arrive.
	Forget(key Key)
}
