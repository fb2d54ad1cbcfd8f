package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.uber.org/zap"

	"turnout/internal/filewatch"
	"turnout/tlsmux"
)

// ticketKeys follows the folder of secrets that routers share.
type ticketKeys struct {
	dir     string
	log     *zap.Logger
	watcher *filewatch.Watcher
	policy  *tlsmux.Policy
	secrets [][]byte
	failed  string
}

// newTicketKeys reads the folder. nil = no secrets are shared.
func newTicketKeys(dir string, log *zap.Logger) (*ticketKeys, error) {
	if dir == "" {
		return nil, nil
	}
	k := &ticketKeys{dir: dir, log: log}
	var err error
	if k.watcher, err = filewatch.New(filewatch.Config{Dir: dir}); err == nil {
		k.secrets, err = readSecrets(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("--tls-ticket-keys-dir (TURNOUT_TLS_TICKET_KEYS_DIR)=%q is not valid: %w; allowed: a folder with a file current and others, of 32 random bytes or more each", dir, err)
	}
	return k, nil
}

// currentSecret is the file whose secret makes new tickets.
const currentSecret = "current"

// readSecrets reads the files of a folder, the current one first, the others by name.
func readSecrets(dir string) ([][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	secrets := [][]byte{nil}
	for _, e := range entries {
		if e.Name()[0] == '.' || e.IsDir() { // what Kubernetes keeps beside the files
			continue
		}
		secret, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if len(secret) < tlsmux.MinTicketSecret {
			return nil, fmt.Errorf("%s holds %d bytes, less than %d", e.Name(), len(secret), tlsmux.MinTicketSecret)
		}
		if e.Name() == currentSecret {
			secrets[0] = secret
		} else {
			secrets = append(secrets, secret)
		}
	}
	if secrets[0] == nil {
		return nil, errors.New("there is no file " + currentSecret)
	}
	return secrets, nil
}

// run gives changed secrets to the policy until ctx is done. A folder that cannot be used leaves those there were.
func (k *ticketKeys) run(ctx context.Context) {
	k.watcher.Run(ctx, func() {
		secrets, err := readSecrets(k.dir)
		if err == nil && slices.EqualFunc(secrets, k.secrets, bytes.Equal) {
			k.failed = ""
			return
		}
		if err == nil {
			err = k.policy.ShareTickets(secrets)
		}
		if err != nil {
			if err.Error() != k.failed { // the folder is looked at from time to time
				k.failed = err.Error()
				k.log.Error("keys of session tickets stay as they were", zap.Error(err))
			}
			return
		}
		k.secrets, k.failed = secrets, ""
		k.log.Info("keys of session tickets changed", zap.Int("secrets", len(secrets)))
	})
}
