package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"go.uber.org/zap"

	"turnout/internal/filewatch"
	"turnout/internal/problem"
	"turnout/tlsmux"
)

// Tickets follows the folder of the secrets that routers share, to resume each other's TLS sessions. Its methods are for one
// goroutine.
type Tickets struct {
	dir      string
	log      *zap.Logger
	problems *problem.List
	watcher  *filewatch.Watcher
	secrets  [][]byte
}

// NewTickets reads the folder: the file current makes new tickets, all others count. problems may be nil.
func NewTickets(dir string, log *zap.Logger, problems *problem.List) (*Tickets, error) {
	k := &Tickets{dir: dir, log: log, problems: problems}
	var err error
	if k.watcher, err = filewatch.New(filewatch.Config{Dir: dir}); err == nil {
		k.secrets, err = readSecrets(dir)
	}
	return k, err
}

// Secrets are those that were read last, the one that makes new tickets first.
func (k *Tickets) Secrets() [][]byte { return k.secrets }

// currentSecret is the file whose secret makes new tickets.
const currentSecret = "current"

// readSecrets reads the files of a folder, the current one first, the others by name.
func readSecrets(dir string) ([][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	contents := make(map[string][]byte)
	for _, e := range entries {
		if e.Name()[0] == '.' || e.IsDir() { // what Kubernetes keeps beside the files
			continue
		}
		secret, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		contents[e.Name()] = secret
	}
	return secretsOf(contents)
}

// mostSecrets is how many secrets count at the same time: a ticket that none of them made is tried with each.
const mostSecrets = 16

// secretsOf returns secrets by name, the current one first, the others by name.
func secretsOf(contents map[string][]byte) ([][]byte, error) {
	if len(contents) > mostSecrets {
		return nil, fmt.Errorf("there are %d secrets, more than %d", len(contents), mostSecrets)
	}
	secrets := [][]byte{nil}
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		secret := contents[name]
		switch {
		case len(secret) < tlsmux.MinTicketSecret:
			return nil, fmt.Errorf("%s holds %d bytes, less than %d", name, len(secret), tlsmux.MinTicketSecret)
		case name == currentSecret:
			secrets[0] = secret
		default:
			secrets = append(secrets, secret)
		}
	}
	if secrets[0] == nil {
		return nil, errors.New("there is no " + currentSecret)
	}
	return secrets, nil
}

// Run gives changed secrets to share until ctx is done.
func (k *Tickets) Run(ctx context.Context, share func(secrets [][]byte) error) {
	keep := keeper{log: k.log, problems: k.problems, file: k.dir, text: "keys of session tickets stay as they were"}
	k.watcher.Run(ctx, func() {
		secrets, err := readSecrets(k.dir)
		same := err == nil && slices.EqualFunc(secrets, k.secrets, bytes.Equal)
		if err == nil && !same {
			err = share(secrets)
		}
		if !keep.keep(err) || same {
			return
		}
		k.secrets = secrets
		k.log.Info("keys of session tickets changed", zap.Int("secrets", len(secrets)))
	})
}
