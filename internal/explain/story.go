package explain

import "time"

// Story is a past request.
type Story struct {
	ID         string    `json:"id"` // by which it is asked for
	UniqueID   string    `json:"uniqueId,omitempty"`
	TraceID    string    `json:"traceId,omitempty"`
	Why        string    `json:"why"` // it is remembered: failed, slow or sampled
	Start      time.Time `json:"start"`
	Client     string    `json:"client"`
	Method     string    `json:"method,omitempty"`
	Host       string    `json:"host,omitempty"`
	Target     string    `json:"target,omitempty"` // without the values of parameters
	Protocol   string    `json:"protocol,omitempty"`
	Secure     bool      `json:"secure"`
	Generation uint64    `json:"generation"` // of the table when it ended
	Namespace  string    `json:"namespace,omitempty"`
	Route      string    `json:"route,omitempty"`
	Pod        string    `json:"pod,omitempty"`
	Endpoint   string    `json:"endpoint,omitempty"`
	Status     int       `json:"status"`
	Reason     string    `json:"reason"` // the word of the access log
	Detail     string    `json:"detail,omitempty"`
	Meaning    string    `json:"text"`    // of the reason
	Retries    int       `json:"retries"` // attempts after the first
	Queue      Duration  `json:"queue"`
	Connect    Duration  `json:"connect"`  // below zero = it was not reached, as the next
	Response   Duration  `json:"response"` // from the request that was sent to the head of the answer
	Total      Duration  `json:"total"`
	BytesIn    uint64    `json:"bytesIn"`
	BytesOut   uint64    `json:"bytesOut"`
	Tunnel     bool      `json:"tunnel,omitempty"`
}
