package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"iter"
	"os"
	"strings"

	"go.uber.org/zap"

	"turnout/internal/admin"
	"turnout/internal/follow"
	"turnout/internal/option"
	"turnout/internal/problem"
	"turnout/tlsmux"
)

// adminOptions are who may read the admin port, and its TLS.
type adminOptions struct {
	user, password         string
	userFile, passwordFile string // both or none count, and then they win
	certFile, keyFile      string
	minVersion             uint16
	suites                 []uint16
	groups                 []tls.CurveID
	open                   *bool    // nil = not given
	hosts                  []string // names of this machine
}

func adminSettings(o *options) []option.Option {
	a := &o.adminPort
	return []option.Option{
		{Flag: "stats-user", Env: "STATS_USERNAME", Value: "NAME", Set: option.Into(&a.user, option.ParseText),
			Help: "user who may read /metrics and /routes"},
		{Flag: "stats-password", Env: "STATS_PASSWORD", Value: "TEXT", Set: option.Into(&a.password, option.ParseText), Help: "the password of that user"},
		{Flag: "stats-user-file", Env: "STATS_USERNAME_FILE", Value: "FILE", Set: option.Into(&a.userFile, option.ParseText),
			Help: "file with the user, to the last byte; counts together with --stats-password-file only, and wins then"},
		{Flag: "stats-password-file", Env: "STATS_PASSWORD_FILE", Value: "FILE", Set: option.Into(&a.passwordFile, option.ParseText),
			Help: "file with the password, to the last byte"},
		{Flag: "admin-open", IsBool: true, Set: func(s string) error {
			open, err := option.ParseBool(s)
			a.open = &open
			return err
		}, Help: "nobody needs a login for /metrics and /routes; otherwise a router of a cluster asks everybody, and one of manifests without a user and password every client on another machine"},
		{Flag: "admin-hosts", Value: "LIST", Set: option.Into(&a.hosts, parseHosts),
			Help: "names by which visitors without a login may call the admin port, besides addresses, names of one label and those of a cluster's services"},
		{Flag: "metrics-tls-cert-file", Env: "ROUTER_METRICS_TLS_CERT_FILE", Value: "FILE", Set: option.Into(&a.certFile, option.ParseText),
			Help: "certificate with which the admin port speaks TLS too; read again when 30 seconds are over"},
		{Flag: "metrics-tls-key-file", Env: "ROUTER_METRICS_TLS_KEY_FILE", Value: "FILE", Set: option.Into(&a.keyFile, option.ParseText),
			Help: "the key of that certificate"},
		{Flag: "metrics-tls-min-version", Env: "ROUTER_METRICS_TLS_MIN_VERSION", Def: "VersionTLS12", Value: "VERSION", EnvStops: true,
			Set: option.Into(&a.minVersion, tlsmux.ParseGoVersion), Help: "oldest version of TLS there: VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13"},
		{Flag: "metrics-tls-ciphers", Env: "ROUTER_METRICS_TLS_CIPHERS", Value: "LIST", EnvStops: true, Set: option.Into(&a.suites, tlsmux.ParseKnownCiphers),
			Help: "cipher suites there, names of OpenSSL or IANA separated by colons"},
		{Flag: "metrics-tls-curves", Env: "ROUTER_METRICS_TLS_CURVES", Value: "LIST", EnvStops: true, Set: option.Into(&a.groups, tlsmux.ParseKnownGroups),
			Help: "key exchange groups there, separated by colons or commas"},
	}
}

// visitors is who may read the admin port, and how it speaks TLS to them.
type visitors struct {
	login  admin.Login
	tls    *tls.Config // nil = not at all
	failed func(error) // logs
}

// visitors reads the files.
func (a *adminOptions) visitors(review func(ctx context.Context, source, token, method, path string) (status int, text string), log *zap.Logger, problems *problem.List) (v visitors, err error) {
	v.failed = func(err error) { log.Error(err.Error()) }
	if v.login, err = a.login(); err != nil {
		return v, err
	}
	v.login.Review, v.login.Asked = review, a.asked(review != nil)
	v.tls, err = a.tls(func(err error) {
		if err == nil {
			problems.Set("file/" + a.certFile)
			return
		}
		err = fmt.Errorf("cannot renew the certificate of the admin port: %w", err)
		problems.Set("file/"+a.certFile, problem.Problem{Kind: problem.File, File: a.certFile, Text: err.Error()})
		v.failed(err)
	})
	return v, err
}

// asked is who is asked for a login. A laptop has nobody who gives tokens, and its owner is on it.
func (a *adminOptions) asked(cluster bool) admin.Asked {
	switch {
	case a.open != nil && *a.open:
		return admin.AskNobody
	case a.open != nil || cluster:
		return admin.AskAll
	}
	return admin.AskRemote
}

// parseHosts reads names separated by commas.
func parseHosts(s string) (hosts []string, err error) {
	if err := option.List(&hosts)(strings.ToLower(s)); err != nil {
		return nil, err
	}
	return hosts, nil
}

// listing is a listing of the controller for the admin port.
func listing[T any](of func(after string, limit int) (iter.Seq[T], string)) admin.Listing {
	return func(after string, limit int) (iter.Seq[any], string) {
		values, next := of(after, limit)
		return func(yield func(any) bool) {
			for value := range values {
				if !yield(value) {
					return
				}
			}
		}, next
	}
}

// login is who may read the admin port.
func (a *adminOptions) login() (admin.Login, error) {
	if a.userFile == "" || a.passwordFile == "" {
		return admin.Login{User: a.user, Password: a.password}, nil
	}
	user, err := os.ReadFile(a.userFile)
	if err != nil {
		return admin.Login{}, fmt.Errorf("cannot read the user of the admin port: %w", err)
	}
	password, err := os.ReadFile(a.passwordFile)
	if err != nil {
		return admin.Login{}, fmt.Errorf("cannot read the password of the admin port: %w", err)
	}
	return admin.Login{User: string(user), Password: string(password)}, nil
}

// tls is how the admin port speaks TLS, nil = not at all. outcome: see follow.NewPair.
func (a *adminOptions) tls(outcome func(error)) (*tls.Config, error) {
	if a.certFile == "" {
		return nil, nil
	}
	pair, err := follow.NewPair(a.certFile, a.keyFile, outcome)
	if err != nil {
		return nil, fmt.Errorf("cannot serve TLS on the admin port: %w", err)
	}
	return &tls.Config{
		MinVersion: a.minVersion, CipherSuites: a.suites, CurvePreferences: a.groups, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.Current(), nil },
	}, nil
}
