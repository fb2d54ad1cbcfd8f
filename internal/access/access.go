// Package access makes of what an operator gives (names, files, certificates) who may read the admin port and how it speaks TLS.
package access

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"os"
	"strings"

	"turnout/internal/admin"
	"turnout/internal/follow"
	"turnout/internal/option"
	"turnout/internal/problem"
)

// Options are who may read the admin port, and its TLS. The zero value has no user and no TLS.
type Options struct {
	User, Password         string
	UserFile, PasswordFile string // both or none count, and then they win
	CertFile, KeyFile      string // "" = no TLS
	MinVersion             uint16
	Suites                 []uint16
	Groups                 []tls.CurveID
	ReadyURL               *url.URL // see admin.Config; nil = none
	Open                   *bool    // nobody needs a login; nil = not given
	Hosts                  []string // names of this machine
}

// namespaceFile contains the namespace of the pod. Kubernetes mounts it into every pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Namespace returns the namespace of the process's pod, "" outside of a cluster.
func Namespace() string {
	text, err := os.ReadFile(namespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// Access is who may read the admin port, and how it speaks TLS to them.
type Access struct {
	Login admin.Login
	TLS   *tls.Config // nil = not at all
}

// Read reads the files. review is admin.Login.Review: with it the router is one of a cluster. failed gets what goes wrong with the certificate
// later; problems has that as long as it is so.
func (o *Options) Read(review func(ctx context.Context, source, token, method, path string) (status int, text string), failed func(error), problems *problem.List) (a Access, err error) {
	if a.Login, err = o.Login(); err != nil {
		return a, err
	}
	a.Login.Review, a.Login.Asked = review, o.asked(review != nil)
	a.TLS, err = o.tls(func(err error) {
		if err == nil {
			problems.Set("file/" + o.CertFile)
			return
		}
		err = fmt.Errorf("cannot renew the certificate of the admin port: %w", err)
		problems.Set("file/"+o.CertFile, problem.Problem{Kind: problem.File, File: o.CertFile, Text: err.Error()})
		failed(err)
	})
	return a, err
}

// asked is who is asked for a login. A laptop has nobody who gives tokens, and its owner is on it.
func (o *Options) asked(cluster bool) admin.Asked {
	switch {
	case o.Open != nil && *o.Open:
		return admin.AskNobody
	case o.Open != nil || cluster:
		return admin.AskAll
	}
	return admin.AskRemote
}

// Login reads the user and the password; both are empty when there are none.
func (o *Options) Login() (admin.Login, error) {
	if o.UserFile == "" || o.PasswordFile == "" {
		return admin.Login{User: o.User, Password: o.Password}, nil
	}
	user, err := os.ReadFile(o.UserFile)
	if err != nil {
		return admin.Login{}, fmt.Errorf("cannot read the user of the admin port: %w", err)
	}
	password, err := os.ReadFile(o.PasswordFile)
	if err != nil {
		return admin.Login{}, fmt.Errorf("cannot read the password of the admin port: %w", err)
	}
	return admin.Login{User: string(user), Password: string(password)}, nil
}

// tls is how the admin port speaks TLS, nil = not at all. outcome: see follow.NewPair.
func (o *Options) tls(outcome func(error)) (*tls.Config, error) {
	if o.CertFile == "" {
		return nil, nil
	}
	pair, err := follow.NewPair(o.CertFile, o.KeyFile, outcome)
	if err != nil {
		return nil, fmt.Errorf("cannot serve TLS on the admin port: %w", err)
	}
	return &tls.Config{
		MinVersion: o.MinVersion, CipherSuites: o.Suites, CurvePreferences: o.Groups, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.Current(), nil },
	}, nil
}

// ParseHosts reads Options.Hosts, separated by commas.
func ParseHosts(s string) ([]string, error) { return option.ParseList(strings.ToLower(s)), nil }
