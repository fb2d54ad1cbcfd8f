package proxy

// TurnRequests is how many requests a connection of a client may begin in one turn of its loop, in either protocol. The rest is
// begun in the next turn, behind what others have by then: what a few bytes make the router do is bounded, as bytes are.
const TurnRequests = 16

// TurnAnswers is how many heads of answers a connection of a pod may have relayed in one turn, for the same reason: a pod may
// hold back what many clients wait for, and then answer all of them at once.
const TurnAnswers = 16
