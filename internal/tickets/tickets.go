// Package tickets says by options where the secrets of TLS session tickets come from: from this process, a folder, or a Secret of the cluster that the routers keep
// themselves.
package tickets

import (
	"errors"
	"fmt"
	"time"

	"turnout/controller/source"
	"turnout/controller/source/cluster"
	"turnout/controller/ticketkeys"
	"turnout/internal/follow"
	"turnout/internal/option"
)

// Options are those about session tickets. Table binds them.
type Options struct {
	dir    string
	secret source.Key
	every  time.Duration
}

const (
	dirOption    = "--tls-ticket-keys-dir (TURNOUT_TLS_TICKET_KEYS_DIR)"
	secretOption = "--tls-ticket-keys-secret (TURNOUT_TLS_TICKET_KEYS_SECRET)"
)

// Table binds o.
func (o *Options) Table() []option.Option {
	return []option.Option{
		{Flag: "tls-ticket-keys-dir", Env: "TURNOUT_TLS_TICKET_KEYS_DIR", Value: "DIR", Set: option.Into(&o.dir, option.ParseText),
			Help: "secrets that routers share to resume each other's TLS sessions, watched: the file current makes new tickets, all others count"},
		{Flag: "tls-ticket-keys-secret", Env: "TURNOUT_TLS_TICKET_KEYS_SECRET", Value: "NAMESPACE/NAME", EnvStops: true, Set: option.Into(&o.secret, parseKey),
			Help: "the same in a Secret of the cluster, which the routers fill and rotate themselves"},
		{Flag: "tls-ticket-rotation", Env: "TURNOUT_TLS_TICKET_ROTATION", Def: "12h", Value: "TIME", Set: option.Into(&o.every, parseEvery),
			Help: "how long a secret of --tls-ticket-keys-secret makes new tickets; it counts for as long again"},
	}
}

// Follow reads the secrets for the first time. from is how the cluster is reached, where there is one. An error names the option that cannot be used.
func (o *Options) Follow(inCluster bool, from cluster.Config) (*follow.Clients, error) {
	cfg := follow.ClientsConfig{TicketDir: o.dir}
	if o.secret != (source.Key{}) {
		keeper, err := o.keeper(inCluster, from)
		if err != nil {
			return nil, err
		}
		cfg.Tickets = keeper
	}
	return follow.NewClients(cfg, from.Log, from.Problems)
}

func (o *Options) keeper(inCluster bool, from cluster.Config) (*ticketkeys.Keeper, error) {
	switch {
	case o.dir != "":
		return nil, option.Usagef("%s and %s exclude each other: give one", dirOption, secretOption)
	case !inCluster:
		return nil, option.Usagef("%s needs a cluster; --tls-ticket-keys-dir does without", secretOption)
	}
	reach, err := from.API()
	if err != nil {
		return nil, err
	}
	client, err := ticketkeys.NewClient(reach)
	if err != nil {
		return nil, err
	}
	return ticketkeys.New(ticketkeys.Config{Client: client, Namespace: o.secret.Namespace, Name: o.secret.Name, Every: o.every, Log: from.Log, Problems: from.Problems})
}

func parseKey(s string) (source.Key, error) {
	key, ok := source.ParseKey(s)
	if !ok {
		return source.Key{}, errors.New("allowed: NAMESPACE/NAME")
	}
	return key, nil
}

func parseEvery(s string) (time.Duration, error) {
	d, err := option.ParseTimespec(s)
	if err == nil && d < ticketkeys.MinEvery {
		err = fmt.Errorf("allowed: %v or more", ticketkeys.MinEvery)
	}
	return d, err
}
