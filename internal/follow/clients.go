package follow

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"turnout/internal/problem"
	"turnout/tlsmux"
	"turnout/tlsmux/clientcert"
)

// ClientsConfig says where files about certificates and sessions of clients are. The zero value has none.
type ClientsConfig struct {
	Trust     *TrustConfig // nil = clients are not asked for certificates
	TicketDir string       // secrets of session tickets; "" = tickets are this process's own
	Tickets   TicketSource // where such secrets come from instead; nil = from nowhere
}

// TicketSource is where secrets of session tickets come from that are no files. share takes them by name, as they are named in files.
type TicketSource interface {
	// First shares what there is at once.
	First(ctx context.Context, share func(contents map[string][]byte) error)
	// Run shares what there is from then on, until ctx is done.
	Run(ctx context.Context, share func(contents map[string][]byte) error) error
}

// Clients follow what certificates and sessions of clients are judged by. Run comes after Attach.
type Clients struct {
	trust   *Trust       // nil = clients are not asked for certificates
	tickets *Tickets     // nil = session tickets do not come from files
	source  TicketSource // nil = nor from elsewhere
	policy  *tlsmux.Policy
}

// NewClients reads the files for the first time. An error names the option whose file cannot be used.
func NewClients(cfg ClientsConfig, log *zap.Logger, problems *problem.List) (c *Clients, err error) {
	c = &Clients{source: cfg.Tickets}
	if cfg.Trust != nil {
		if c.trust, err = NewTrust(*cfg.Trust); err != nil {
			return nil, err
		}
	}
	if cfg.TicketDir == "" {
		return c, nil
	}
	if c.tickets, err = NewTickets(cfg.TicketDir, log, problems); err != nil {
		return nil, fmt.Errorf("--tls-ticket-keys-dir (TURNOUT_TLS_TICKET_KEYS_DIR)=%q is not valid: %w; allowed: a folder with a file current and others, of 32 random bytes or more each", cfg.TicketDir, err)
	}
	return c, nil
}

// Trust is what certificates are judged by to begin with; nil = clients are not asked for them.
func (c *Clients) Trust() *clientcert.Trust {
	if c.trust == nil {
		return nil
	}
	return c.trust.First()
}

// Attach gives a policy what there is, and from then on changes.
func (c *Clients) Attach(policy *tlsmux.Policy) error {
	c.policy = policy
	if c.trust != nil {
		c.trust.Use(policy.SetTrust)
	}
	if c.source != nil {
		ctx, cancel := context.WithTimeout(context.Background(), firstTickets)
		defer cancel()
		c.source.First(ctx, c.share)
	}
	if c.tickets == nil {
		return nil
	}
	return policy.ShareTickets(c.tickets.Secrets())
}

// firstTickets is how long the start waits for secrets of session tickets. Without them, clients of other routers need whole handshakes.
const firstTickets = 3 * time.Second

// share has the policy use secrets by name.
func (c *Clients) share(contents map[string][]byte) error {
	secrets, err := secretsOf(contents)
	if err != nil {
		return err
	}
	return c.policy.ShareTickets(secrets)
}

// Run follows files and the source of tickets until ctx is done. An error is of the latter.
func (c *Clients) Run(ctx context.Context) error {
	var all sync.WaitGroup
	if c.trust != nil {
		all.Go(func() { c.trust.Run(ctx) })
	}
	if c.tickets != nil {
		all.Go(func() { c.tickets.Run(ctx, c.policy.ShareTickets) })
	}
	var err error
	if c.source != nil {
		all.Go(func() { err = c.source.Run(ctx, c.share) })
	}
	all.Wait()
	<-ctx.Done()
	return err
}
