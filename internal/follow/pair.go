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
	failed    func(error)

	mu   sync.Mutex
	pair *tls.Certificate // guarded by mu
	when time.Time        // of the last reading; guarded by mu
}

// NewPair reads the files of a certificate and its key. failed is called when they cannot be used later.
func NewPair(cert, key string, failed func(error)) (*Pair, error) {
	p := &Pair{cert: cert, key: key, failed: failed}
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
		if err := p.read(); err != nil {
			p.failed(err)
		}
	}
	return p.pair
}
