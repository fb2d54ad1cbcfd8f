package health

// Outcome says how far a check came and how it ended.
type Outcome uint8

// The outcomes. Those of layer 4 are of the connect, those of layer 6 of the TLS handshake, those of layer 7 of the answer.
const (
	Unchecked Outcome = iota // not checked, or not any more
	L4OK
	L4TOUT // not connected in time
	L4CON  // refused, or not reachable
	L6OK
	L6TOUT // no handshake in time
	L6RSP  // the handshake failed, or the certificate is not the one that is expected
	L7OK
	L7TOUT // no answer in time
	L7RSP  // what came is no answer, is too long, or ends too early
	L7STS  // an answer with a status that is not expected
)

// The outcomes of a check that ends in a phase because of the time, and because the connection ended.
var (
	timeouts = [...]Outcome{layer4: L4TOUT, layer6: L6TOUT, layer7: L7TOUT}
	ends     = [...]Outcome{layer4: L4CON, layer6: L6RSP, layer7: L7RSP}
)

// String returns the name that HAProxy has for the outcome in its log and statistics.
func (o Outcome) String() string {
	return [...]string{"UNK", "L4OK", "L4TOUT", "L4CON", "L6OK", "L6TOUT", "L6RSP", "L7OK", "L7TOUT", "L7RSP", "L7STS"}[o]
}

// Result is how a check ended.
type Result struct {
	Outcome Outcome
	Status  int // of the answer, with L7OK and L7STS; else 0
}

// Passed reports that the endpoint is well.
func (r Result) Passed() bool { return r.Outcome == L4OK || r.Outcome == L6OK || r.Outcome == L7OK }
