package follow

import (
	"crypto/tls"
	"sync"
	"time"
)

// pairPause is how long the certificate of a Pair is used before its files are read again.
const pairPause = 30 * time.Second

// Pair is a certificate in files that somebody rotates, read again when it is asked for. While they cannot be used the last good
// one is. Any goroutine may use it.
type Pair struct {
	cert, key string
	outcome   func(error)
	failing   bool // guarded by mu

	mu   sync.Mutex
	pair *tls.Certificate // guarded by mu
	when time.Time        // of the last reading; guarded by mu
}

// NewPair reads the files of a certificate and its key. outcome is called with an error when they cannot be used later, and with nil when they
// can be again.
func NewPair(cert, key string, outcome func(error)) (*Pair, error) {
	p := &Pair{cert: cert, key: key, outcome: outcome}
	return p, p.read()
}

func (p *Pair) read() error {
	p.when = time.Now()
	pair, err := tls.LoadX509KeyPair(p.cert, p.key)
	if err != nil {
		return err
	}
	p.pair = &pair
	return nil
}

// Current is the certificate.
func (p *Pair) Current() *tls.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.when) >= pairPause {
		err := p.read()
		if err != nil || p.failing {
			p.outcome(err)
		}
		p.failing = err != nil
	}
	return p.pair
}
