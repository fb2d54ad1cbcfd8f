package proxy

// IterationRequests is how many requests a connection of a client may begin in one iteration of its loop, in either protocol. The rest is
// begun in the next iteration, after what others have by then: what a few bytes make the router do is bounded, as bytes are.
const IterationRequests = 16

// IterationAnswers is how many heads of answers a connection of a pod may have relayed in one iteration, for the same reason: a pod may
// hold back what many clients wait for, and then answer all of them at once.
const IterationAnswers = 16
