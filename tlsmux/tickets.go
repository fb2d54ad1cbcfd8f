package tlsmux

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// ticketRotation is how long one secret of a Policy's own makes keys for new tickets.
	ticketRotation = 12 * time.Hour
	// ticketSecrets is how many of them count; the oldest tickets are then this many rotations old.
	ticketSecrets = 3
)

// MinTicketSecret is the length of the shortest secret that Policy.ShareTickets takes, in bytes.
const MinTicketSecret = 32

// ticketSource is what the keys of session tickets are made from. The keys themselves also depend on the policy, so that a
// ticket that was issued under one does not even decrypt under another.
type ticketSource struct {
	mu      sync.Mutex
	secrets [][]byte     // the first one is for new tickets
	shared  bool         // they came from outside
	due     atomic.Int64 // when the next own one has to be made, Unix nanoseconds
}

// renew makes a new secret if it is time. It returns false if it is not.
func (s *ticketSource) renew(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shared || now.UnixNano() < s.due.Load() {
		return false
	}
	fresh := make([]byte, 32)
	_, _ = rand.Read(fresh) // never fails
	s.secrets = slices.Insert(s.secrets, 0, fresh)
	s.secrets = s.secrets[:min(len(s.secrets), ticketSecrets)]
	s.due.Store(now.Add(ticketRotation).UnixNano())
	return true
}

// share replaces the secrets by those of others, from now on.
func (s *ticketSource) share(secrets [][]byte) error {
	if len(secrets) == 0 {
		return errors.New("cannot share session tickets: there is no secret")
	}
	var own [][]byte
	for i, secret := range secrets {
		if len(secret) < MinTicketSecret {
			return fmt.Errorf("cannot share session tickets: secret %d has %d bytes, less than %d", i+1, len(secret), MinTicketSecret)
		}
		own = append(own, slices.Clone(secret))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets, s.shared = own, true
	s.due.Store(math.MaxInt64)
	return nil
}

// keys makes what crypto/tls encrypts tickets with.
func (s *ticketSource) keys(policy string) ([][32]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([][32]byte, len(s.secrets))
	for i, secret := range s.secrets {
		key, err := hkdf.Key(sha256.New, secret, nil, "turnout session tickets "+policy, len(keys[i]))
		if err != nil {
			return nil, fmt.Errorf("cannot make keys of session tickets: %w", err)
		}
		copy(keys[i][:], key)
	}
	return keys, nil
}

const ticketTag = "turnout sni "

// bindTickets has c issue tickets that resume sessions of the same server name only: what a session was allowed was
// decided by its name (RFC 6066 section 3 forbids resumption under another).
func bindTickets(c *tls.Config) {
	c.WrapSession = func(cs tls.ConnectionState, s *tls.SessionState) ([]byte, error) {
		s.Extra = slices.DeleteFunc(s.Extra, isTicketTag)
		s.Extra = append(s.Extra, []byte(ticketTag+strings.ToLower(cs.ServerName)))
		return c.EncryptTicket(cs, s)
	}
	c.UnwrapSession = func(ticket []byte, cs tls.ConnectionState) (*tls.SessionState, error) {
		s, err := c.DecryptTicket(ticket, cs)
		if err != nil || s == nil {
			return nil, err
		}
		want := ticketTag + strings.ToLower(cs.ServerName)
		if !slices.ContainsFunc(s.Extra, func(b []byte) bool { return string(b) == want }) {
			return nil, nil // a full handshake follows
		}
		return s, nil
	}
}

func isTicketTag(b []byte) bool { return strings.HasPrefix(string(b), ticketTag) }
