package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"go.uber.org/zap"

	"turnout/internal/filewatch"
	"turnout/internal/server"
	"turnout/proxy/identity"
	"turnout/tlsmux"
	"turnout/tlsmux/clientcert"
)

// mutualOptions are the options about certificates of clients.
type mutualOptions struct {
	mode               clientcert.Mode
	authorities, lists string // files
	filter             *regexp.Regexp
	httpProxy, noProxy string
	ticketDir          string
}

func mutualSettings(o *options) []setting {
	m := &o.mutual
	return []setting{
		{flag: "mutual-tls-auth", env: "ROUTER_MUTUAL_TLS_AUTH", def: "none", value: "MODE", envStops: true,
			set: into(&m.mode, clientcert.ParseMode), help: "whether TLS clients are asked for a certificate: none, optional or required"},
		{flag: "mutual-tls-auth-ca", env: "ROUTER_MUTUAL_TLS_AUTH_CA", value: "FILE", set: into(&m.authorities, parseText),
			help: "authorities of client certificates in PEM, watched; the default is those of the system"},
		{flag: "mutual-tls-auth-crl", env: "ROUTER_MUTUAL_TLS_AUTH_CRL", value: "FILE", set: into(&m.lists, parseText),
			help: "revocation lists of client certificates, watched; without it those that --mutual-tls-auth-ca names are fetched"},
		{flag: "mutual-tls-auth-filter", env: "ROUTER_MUTUAL_TLS_AUTH_FILTER", value: "REGEX", envStops: true,
			set: into(&m.filter, identity.ParseFilter), help: "what the subject of client certificates, such as /C=US/O=Org/CN=x, has to match"},
		{flag: "http-proxy", env: "HTTP_PROXY", value: "URL", set: into(&m.httpProxy, parseText),
			help: "proxy that revocation lists are fetched through"},
		{flag: "no-proxy", env: "NO_PROXY", value: "LIST", set: into(&m.noProxy, parseText),
			help: "hosts, domains and addresses that they are fetched from directly"},
		{flag: "tls-ticket-keys-dir", env: "TURNOUT_TLS_TICKET_KEYS_DIR", value: "DIR", set: into(&m.ticketDir, parseText),
			help: "secrets that routers share to resume each other's TLS sessions, watched: the file current makes new tickets, all others count"},
	}
}

// idle names the options that do nothing because clients are not asked for certificates.
func (m *mutualOptions) idle() (warnings []string) {
	for _, o := range []struct {
		name string
		set  bool
	}{
		{"--mutual-tls-auth-ca (ROUTER_MUTUAL_TLS_AUTH_CA)", m.authorities != ""},
		{"--mutual-tls-auth-crl (ROUTER_MUTUAL_TLS_AUTH_CRL)", m.lists != ""},
		{"--mutual-tls-auth-filter (ROUTER_MUTUAL_TLS_AUTH_FILTER)", m.filter != nil},
	} {
		if o.set && m.mode == clientcert.None {
			warnings = append(warnings, o.name+" does nothing: --mutual-tls-auth (ROUTER_MUTUAL_TLS_AUTH) is none")
		}
	}
	return warnings
}

// clientRooms follow what certificates and sessions of clients are judged by.
type clientRooms struct {
	trust   *clientTrust // nil = clients are not asked for certificates
	tickets *ticketKeys  // nil = session tickets are this process's own
}

// newClientRooms reads the files for the first time.
func newClientRooms(o *mutualOptions, log *zap.Logger) (r clientRooms, err error) {
	if r.trust, err = newClientTrust(o, log); err != nil {
		return r, err
	}
	r.tickets, err = newTicketKeys(o.ticketDir, log)
	return r, err
}

func (r *clientRooms) configure(data *server.Config, o *mutualOptions) {
	if r.trust != nil {
		data.TLS.ClientAuth, data.TLS.Trust, data.Identities.Filter = o.mode, r.trust.first, o.filter
	}
}

// attach gives the policy that changes are for. It comes before run.
func (r *clientRooms) attach(p *tlsmux.Policy) error {
	if r.trust != nil {
		r.trust.policy = p
	}
	if r.tickets == nil {
		return nil
	}
	r.tickets.policy = p
	return p.ShareTickets(r.tickets.secrets)
}

// run follows the files until ctx is done.
func (r *clientRooms) run(ctx context.Context) error {
	var all sync.WaitGroup
	if r.trust != nil {
		all.Go(func() { r.trust.run(ctx) })
	}
	if r.tickets != nil {
		all.Go(func() { r.tickets.run(ctx) })
	}
	all.Wait()
	<-ctx.Done()
	return nil
}

// systemAuthorities are where systems keep the authorities they trust, the place of the router we replace first.
func systemAuthorities() []string {
	return []string{
		"/etc/ssl/certs/ca-bundle.trust.crt", "/etc/pki/tls/certs/ca-bundle.trust.crt", "/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem",
	}
}

// clientTrust follows the files that client certificates are judged by.
type clientTrust struct {
	authorities, lists string // files; no lists = ""
	log                *zap.Logger
	watchers           []*filewatch.Watcher
	updater            *clientcert.Updater // nil = lists are not fetched
	policy             *tlsmux.Policy      // nil until it exists; then first is not used any more
	first              *clientcert.Trust

	mu     sync.Mutex
	bundle *clientcert.Bundle
	crl    []byte
	failed string // why the last reading came to nothing
}

// newClientTrust reads the files for the first time. nil = clients are not asked for certificates.
func newClientTrust(o *mutualOptions, log *zap.Logger) (*clientTrust, error) {
	if o.mode == clientcert.None {
		return nil, nil
	}
	c := &clientTrust{authorities: o.authorities, lists: o.lists, log: log}
	named := "--mutual-tls-auth-ca (ROUTER_MUTUAL_TLS_AUTH_CA)"
	if c.authorities == "" {
		places := systemAuthorities()
		i := slices.IndexFunc(places, func(p string) bool { _, err := os.Stat(p); return err == nil })
		if i < 0 {
			return nil, fmt.Errorf("cannot find authorities of client certificates: this system has none, %s has to name a file of certificates in PEM", named)
		}
		c.authorities = places[i]
	}
	// Watching comes first: what changes from here on is seen.
	for _, file := range []string{c.authorities, c.lists} {
		if file == "" {
			continue
		}
		w, err := filewatch.New(filewatch.Config{Dir: filepath.Dir(file)})
		if err != nil {
			return nil, fmt.Errorf("cannot use %s for client certificates: %w", file, err)
		}
		c.watchers = append(c.watchers, w)
	}
	var err error
	if c.bundle, err = readBundle(c.authorities); err != nil {
		return nil, fmt.Errorf("%s=%q is not valid: %w; allowed: a file of certificates in PEM", named, c.authorities, err)
	}
	switch {
	case c.lists != "":
		if c.crl, err = os.ReadFile(c.lists); err == nil {
			c.first, err = c.withLists(c.bundle, c.crl)
		}
		if err != nil {
			return nil, fmt.Errorf("--mutual-tls-auth-crl (ROUTER_MUTUAL_TLS_AUTH_CRL)=%q is not valid: %w; allowed: a file of revocation lists in PEM, or one in DER", c.lists, err)
		}
	case o.authorities == "":
		c.first = clientcert.NewTrust(c.bundle, nil)
	default:
		c.updater, err = clientcert.NewUpdater(c.bundle, clientcert.UpdaterConfig{
			Fetch: clientcert.Downloader(o.httpProxy, o.noProxy), Changed: c.serve,
			Failed: func(err error) {
				log.Error("revocation lists of client certificates stay as they were", zap.Error(err))
			},
		})
	}
	return c, err
}

func readBundle(file string) (*clientcert.Bundle, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return clientcert.ParseBundle(text)
}

func (c *clientTrust) withLists(b *clientcert.Bundle, crl []byte) (*clientcert.Trust, error) {
	lists, err := clientcert.ParseLists(crl)
	if err != nil {
		return nil, err
	}
	return clientcert.NewTrust(b, lists), nil
}

// serve puts t to use.
func (c *clientTrust) serve(t *clientcert.Trust) {
	if c.policy == nil {
		c.first = t
		return
	}
	if err := c.policy.SetTrust(t); err != nil {
		c.log.Error("client certificates are judged as before", zap.Error(err))
		return
	}
	c.log.Info("client certificates are judged anew", zap.Int("authorities", t.Bundle().Certificates()), zap.Int("revocation_lists", t.Lists()))
}

// run follows the files until ctx is done.
func (c *clientTrust) run(ctx context.Context) {
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
func (c *clientTrust) reread() {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.reload()
	switch {
	case err == nil:
		c.failed = ""
	case err.Error() != c.failed: // the folder is looked at from time to time
		c.failed = err.Error()
		c.log.Error("client certificates are judged as before", zap.Error(err))
	}
}

func (c *clientTrust) reload() error {
	bundle, err := readBundle(c.authorities)
	if err != nil {
		return fmt.Errorf("cannot use authorities in %s: %w", c.authorities, err)
	}
	var crl []byte
	if c.lists != "" {
		if crl, err = os.ReadFile(c.lists); err != nil {
			return fmt.Errorf("cannot use revocation lists: %w", err)
		}
	}
	same := bundle.Digest() == c.bundle.Digest()
	if same && bytes.Equal(crl, c.crl) {
		return nil
	}
	t := clientcert.NewTrust(bundle, nil)
	if c.lists != "" {
		if t, err = c.withLists(bundle, crl); err != nil {
			return fmt.Errorf("cannot use revocation lists in %s: %w", c.lists, err)
		}
	}
	c.bundle, c.crl = bundle, crl
	if c.updater != nil {
		c.updater.SetBundle(bundle)
		return nil
	}
	c.serve(t)
	return nil
}
