package clientcert

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"
)

// retryAfter is the time from a failed update to the next, and to the next update when a list has expired already.
const retryAfter = 5 * time.Minute

// UpdaterConfig configures an Updater. All but Outcome is required.
type UpdaterConfig struct {
	// Fetch returns what an address holds. It is bounded in time and size by its provider.
	Fetch func(ctx context.Context, address string) ([]byte, error)
	// Changed is given what clients are to be judged by from now on.
	Changed func(*Trust)
	// Outcome is called at the end of each update, from Run: nil when every list is there and current, else the reason why the update
	// came to nothing. Then what was given to Changed stays. An update that is given up for another bundle has no outcome.
	Outcome func(error)
}

// Updater keeps the revocation lists that the certificates of a bundle name as their distribution points (RFC 5280
// section 4.2.1.13). An update is all or nothing: one list that cannot be had leaves the old ones in place, and there is
// another try in five minutes. While there never was a complete set, every certificate is refused.
type Updater struct {
	cfg  UpdaterConfig
	wake chan struct{} // capacity 1: there is another bundle

	mu     sync.Mutex
	bundle *Bundle
	cancel context.CancelFunc // of the update that runs; nil = none

	held map[string]*List // by certificate that names it; of Run
}

// NewUpdater checks the configuration and tells Changed what b begins with: no list at all if none is named, else none yet.
func NewUpdater(b *Bundle, cfg UpdaterConfig) (*Updater, error) {
	if cfg.Fetch == nil || cfg.Changed == nil || b == nil {
		return nil, errors.New("cannot make an updater of revocation lists: a bundle, Fetch and Changed are required")
	}
	if cfg.Outcome == nil {
		cfg.Outcome = func(error) {}
	}
	u := &Updater{cfg: cfg, wake: make(chan struct{}, 1), bundle: b}
	cfg.Changed(u.trust(b))
	return u, nil
}

// SetBundle replaces the bundle. The lists that are there are kept for it, what is missing is fetched at once.
func (u *Updater) SetBundle(b *Bundle) {
	u.mu.Lock()
	u.bundle = b
	if u.cancel != nil {
		u.cancel()
	}
	u.mu.Unlock()
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// Run fetches until ctx is done. It must be called once.
func (u *Updater) Run(ctx context.Context) {
	var served *Bundle
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-u.wake:
		case <-again.C:
		}
		b, updating, end := u.begin(ctx)
		if served != b && served != nil {
			u.cfg.Changed(u.trust(b)) // authorities that were taken away are not trusted until lists have come
		}
		served = b
		again.Stop()
		if wait := u.update(updating, b); wait > 0 {
			again.Reset(wait)
		}
		end()
	}
}

// begin returns the bundle to update for, and a context that ends when there is another.
func (u *Updater) begin(ctx context.Context) (*Bundle, context.Context, context.CancelFunc) {
	u.mu.Lock()
	defer u.mu.Unlock()
	ctx, u.cancel = context.WithCancel(ctx)
	return u.bundle, ctx, u.cancel
}

// trust is b with the lists that are held.
func (u *Updater) trust(b *Bundle) *Trust {
	if len(b.naming()) == 0 {
		return NewTrust(b, nil)
	}
	lists := make([]*List, 0, len(u.held))
	for _, l := range u.held {
		lists = append(lists, l)
	}
	return NewTrust(b, lists)
}

// update fetches what b needs and has not, and returns when to come again; 0 = not before there is another bundle.
func (u *Updater) update(ctx context.Context, b *Bundle) time.Duration {
	next, fetched := map[string]*List{}, map[string]*List{}
	var earliest time.Time
	for _, cert := range b.naming() {
		key := keyOf(cert)
		l := u.held[key]
		if l == nil || !time.Now().Before(l.NextUpdate) {
			var err error
			if l, err = u.fetch(ctx, b, cert, fetched); err != nil {
				if ctx.Err() == nil { // else it is only that there is something newer to do
					u.cfg.Outcome(fmt.Errorf("cannot get the revocation list for %s: %w", cert.Subject, err))
				}
				return retryAfter
			}
		}
		next[key] = l
		if earliest.IsZero() || l.NextUpdate.Before(earliest) {
			earliest = l.NextUpdate
		}
	}
	changed := len(fetched) > 0 || len(next) != len(u.held)
	u.held = next
	if changed {
		u.cfg.Changed(u.trust(b))
	}
	u.cfg.Outcome(nil)
	if earliest.IsZero() {
		return 0
	}
	if wait := time.Until(earliest); wait > 0 {
		return wait
	}
	return retryAfter
}

// fetch tries the addresses that cert names, in order. have is what was fetched for others before.
func (u *Updater) fetch(ctx context.Context, b *Bundle, cert *x509.Certificate, have map[string]*List) (*List, error) {
	var failed error
	for _, address := range cert.CRLDistributionPoints {
		if l := have[address]; l != nil {
			return l, nil
		}
		l, err := u.fetchList(ctx, b, address)
		if err == nil {
			have[address] = l
			return l, nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", address, err))
	}
	return nil, failed
}

func (u *Updater) fetchList(ctx context.Context, b *Bundle, address string) (*List, error) {
	data, err := u.cfg.Fetch(ctx, address)
	if err != nil {
		return nil, err
	}
	lists, err := ParseLists(data, b)
	if err != nil {
		return nil, err
	}
	l := lists[0]
	if !l.current(time.Now()) {
		return nil, ErrListExpired
	}
	return l, b.vouches(l)
}

// vouches fails if an authority of the bundle has the name of the list's issuer and none of them signed it. A list of an
// authority that only clients send is authenticated when they do.
func (b *Bundle) vouches(l *List) error {
	for _, c := range b.certs {
		if l.signer == "" && string(c.RawSubject) == l.issuer {
			return errors.New("the list is not signed by its issuer")
		}
	}
	return nil
}

// naming returns the certificates that name distribution points.
func (b *Bundle) naming() []*x509.Certificate {
	var all []*x509.Certificate
	for _, c := range b.certs {
		if len(c.CRLDistributionPoints) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// keyOf tells certificates apart whose lists may differ: by the key they are about, and by the issuer.
func keyOf(c *x509.Certificate) string {
	key := c.SubjectKeyId
	if len(key) == 0 {
		sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
		key = sum[:]
	}
	return string(key) + string(c.RawIssuer)
}
