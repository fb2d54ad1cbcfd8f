package follow

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"turnout/internal/filewatch"
	"turnout/internal/problem"
	"turnout/internal/target"
	"turnout/tlsmux"
	"turnout/tlsmux/clientcert"
)

// TrustConfig is what certificates of clients are judged by.
type TrustConfig struct {
	// Authorities is a file of certificates in PEM; "" = the one of the system. Lists is a file of revocation lists in PEM, or of one
	// in DER; "" = those that Authorities names are fetched, for those of the system none are.
	Authorities, Lists string
	// Content is what is in the place of the file of Authorities, which then only names it; nil = the file counts. Empty, nobody is
	// trusted: what was to be there could not be read.
	Content []byte
	// AuthoritiesName and ListsName are what messages call the two files.
	AuthoritiesName, ListsName string
	// HTTPProxy is what revocation lists are fetched through, NoProxy the hosts they are fetched from directly, see
	// clientcert.Downloader.
	HTTPProxy, NoProxy string
	// Targets judges the sources of revocation lists; nil = no check.
	Targets  *target.Guard
	Log      *zap.Logger   // required
	Problems *problem.List // receives unusable files; nil = none are reported
}

// systemAuthorities are where systems keep the authorities they trust, the place of the HAProxy router first.
func systemAuthorities() []string {
	return []string{
		"/etc/ssl/certs/ca-bundle.trust.crt", "/etc/pki/tls/certs/ca-bundle.trust.crt", "/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem",
	}
}

// Trust follows the files that client certificates are judged by.
type Trust struct {
	cfg      TrustConfig
	watchers []*filewatch.Watcher
	updater  *clientcert.Updater           // nil = lists are not fetched
	use      func(*clientcert.Trust) error // nil until Use; then first is not used any more
	first    *clientcert.Trust

	mu     sync.Mutex
	bundle *clientcert.Bundle
	crl    [sha256.Size]byte // of the file of revocation lists
	keep   keeper

	fetching keeper // of the updater
}

// NewTrust reads the files for the first time.
func NewTrust(cfg TrustConfig) (*Trust, error) {
	c := &Trust{cfg: cfg, keep: keeper{log: cfg.Log, problems: cfg.Problems, text: "client certificates are judged as before"}}
	if cfg.Authorities == "" && cfg.Content == nil {
		places := systemAuthorities()
		i := slices.IndexFunc(places, func(p string) bool { _, err := os.Stat(p); return err == nil })
		if i < 0 {
			return nil, fmt.Errorf("cannot find authorities of client certificates: this system has none, %s has to name a file of certificates in PEM", cfg.AuthoritiesName)
		}
		c.cfg.Authorities = places[i]
	}
	c.keep.file = c.cfg.Authorities
	c.fetching = c.keep
	c.fetching.text = "revocation lists of client certificates stay as they were"
	// Watching comes first: what changes from here on is seen.
	for i, file := range []string{c.cfg.Authorities, c.cfg.Lists} {
		if file == "" || i == 0 && c.cfg.Content != nil {
			continue
		}
		w, err := filewatch.New(filewatch.Config{Dir: filepath.Dir(file)})
		if err != nil {
			return nil, fmt.Errorf("cannot use %s for client certificates: %w", file, err)
		}
		c.watchers = append(c.watchers, w)
	}
	var err error
	if c.bundle, err = c.readBundle(); err != nil {
		return nil, fmt.Errorf("%s=%q is not valid: %w; allowed: a file of certificates in PEM", cfg.AuthoritiesName, c.cfg.Authorities, err)
	}
	switch {
	case cfg.Lists != "":
		var crl []byte
		if crl, err = os.ReadFile(cfg.Lists); err == nil {
			c.crl = sha256.Sum256(crl)
			c.first, err = withLists(c.bundle, crl)
		}
		if err != nil {
			return nil, fmt.Errorf("%s=%q is not valid: %w; allowed: a file of revocation lists in PEM, or one in DER", cfg.ListsName, cfg.Lists, err)
		}
	case cfg.Authorities == "" && cfg.Content == nil, cfg.Content != nil && len(cfg.Content) == 0:
		c.first = clientcert.NewTrust(c.bundle, nil)
	default:
		c.updater, err = clientcert.NewUpdater(c.bundle, clientcert.UpdaterConfig{
			Fetch: clientcert.Downloader(cfg.HTTPProxy, cfg.NoProxy, cfg.Targets), Changed: c.serve,
			Outcome: func(err error) { c.fetching.keep(err) },
		})
	}
	return c, err
}

// First is what certificates are judged by to begin with.
func (c *Trust) First() *clientcert.Trust { return c.first }

// Use says who is given what comes after First. It is called once, before Run.
func (c *Trust) Use(use func(*clientcert.Trust) error) { c.use = use }

// readBundle reads the authorities.
func (c *Trust) readBundle() (*clientcert.Bundle, error) {
	switch {
	case c.cfg.Content == nil:
		text, err := os.ReadFile(c.cfg.Authorities)
		if err != nil {
			return nil, err
		}
		return clientcert.ParseBundle(text)
	case len(c.cfg.Content) == 0:
		if c.bundle != nil {
			return c.bundle, nil
		}
		return nobody()
	}
	return clientcert.ParseBundle(c.cfg.Content)
}

// nobody is a bundle that no certificate is verified by: nobody has the key.
func nobody() (*clientcert.Bundle, error) {
	own, err := tlsmux.SelfSigned("nobody.invalid", time.Now())
	if err != nil {
		return nil, err
	}
	return clientcert.ParseBundle(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]}))
}

// Same reports that certificates are judged alike by cfg and other.
func (cfg *TrustConfig) Same(other *TrustConfig) bool {
	return cfg.Authorities == other.Authorities && cfg.Lists == other.Lists && (cfg.Content == nil) == (other.Content == nil) && bytes.Equal(cfg.Content, other.Content) &&
		cfg.HTTPProxy == other.HTTPProxy && cfg.NoProxy == other.NoProxy
}

func withLists(b *clientcert.Bundle, crl []byte) (*clientcert.Trust, error) {
	lists, err := clientcert.ParseLists(crl, b)
	if err != nil {
		return nil, err
	}
	return clientcert.NewTrust(b, lists), nil
}

// serve puts t to use.
func (c *Trust) serve(t *clientcert.Trust) {
	if c.use == nil {
		c.first = t
		return
	}
	if err := c.use(t); err != nil {
		c.cfg.Log.Error("client certificates are judged as before", zap.Error(err))
		return
	}
	c.cfg.Log.Info("client certificates are judged anew", zap.Int("authorities", t.Bundle().Certificates()), zap.Int("revocation_lists", t.Lists()))
}

// Run follows the files until ctx is done.
func (c *Trust) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, w := range c.watchers {
		all.Go(func() { w.Run(ctx, c.reread) })
	}
	if c.updater != nil {
		all.Go(func() { c.updater.Run(ctx) })
	}
	all.Wait()
}

// reread looks whether the files have changed. What cannot be used leaves what there was.
func (c *Trust) reread() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep.keep(c.reload())
}

func (c *Trust) reload() error {
	bundle, err := c.readBundle()
	if err != nil {
		return fmt.Errorf("cannot use authorities in %s: %w", c.cfg.Authorities, err)
	}
	var crl []byte
	if c.cfg.Lists != "" {
		if crl, err = os.ReadFile(c.cfg.Lists); err != nil {
			return fmt.Errorf("cannot use revocation lists: %w", err)
		}
	}
	sum := c.crl
	if c.cfg.Lists != "" {
		sum = sha256.Sum256(crl)
	}
	if bundle.Digest() == c.bundle.Digest() && sum == c.crl {
		return nil
	}
	t := clientcert.NewTrust(bundle, nil)
	if c.cfg.Lists != "" {
		if t, err = withLists(bundle, crl); err != nil {
			return fmt.Errorf("cannot use revocation lists in %s: %w", c.cfg.Lists, err)
		}
	}
	c.bundle, c.crl = bundle, sum
	if c.updater != nil {
		c.updater.SetBundle(bundle)
		return nil
	}
	c.serve(t)
	return nil
}
