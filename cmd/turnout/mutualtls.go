package main

import (
	"turnout/internal/follow"
	"turnout/internal/option"
	"turnout/internal/server"
	"turnout/internal/tickets"
	"turnout/proxy/identity"
	"turnout/tlsmux/clientcert"
)

// mutualOptions are the options about certificates and sessions of clients that are not in the configuration of the request path.
type mutualOptions struct {
	trust   follow.TrustConfig
	tickets tickets.Options
}

const (
	authoritiesOption = "--mutual-tls-auth-ca (ROUTER_MUTUAL_TLS_AUTH_CA)"
	listsOption       = "--mutual-tls-auth-crl (ROUTER_MUTUAL_TLS_AUTH_CRL)"
	filterOption      = "--mutual-tls-auth-filter (ROUTER_MUTUAL_TLS_AUTH_FILTER)"
)

func mutualSettings(o *options) []option.Option {
	m := &o.mutual.trust
	m.AuthoritiesName, m.ListsName = authoritiesOption, listsOption
	return append([]option.Option{
		{Flag: "mutual-tls-auth", Env: "ROUTER_MUTUAL_TLS_AUTH", Def: "none", Value: "MODE", EnvStops: true,
			Set: option.Into(&o.server.TLS.ClientAuth, clientcert.ParseMode), Help: "whether TLS clients are asked for a certificate: none, optional or required"},
		{Flag: "mutual-tls-auth-ca", Env: "ROUTER_MUTUAL_TLS_AUTH_CA", Value: "FILE", Set: option.Into(&m.Authorities, option.ParseText),
			SetSaid: func(s *option.Said) error {
				m.Authorities, m.Content = s.Value, s.Content
				if _, err := clientcert.ParseBundle(s.Content); len(s.Content) > 0 && err != nil {
					m.Content = []byte{} // nobody is trusted, instead of everybody that the system trusts
					o.doubts = append(o.doubts, s.From+": no certificate of a client is accepted: "+err.Error())
				}
				return nil
			},
			Help: "authorities of client certificates in PEM, watched; the default is those of the system"},
		{Flag: "mutual-tls-auth-crl", Env: "ROUTER_MUTUAL_TLS_AUTH_CRL", Value: "FILE", Set: option.Into(&m.Lists, option.ParseText),
			Help: "revocation lists of client certificates, watched; without it those that --mutual-tls-auth-ca names are fetched"},
		{Flag: "mutual-tls-auth-filter", Env: "ROUTER_MUTUAL_TLS_AUTH_FILTER", Value: "REGEX", EnvStops: true,
			Set: option.Into(&o.server.Identities.Filter, identity.ParseFilter), Help: "what the subject of client certificates, such as /C=US/O=Org/CN=x, has to match"},
		{Flag: "http-proxy", Env: "HTTP_PROXY", Value: "URL", Set: option.Into(&m.HTTPProxy, option.ParseText),
			Help: "proxy that revocation lists are fetched through"},
		{Flag: "no-proxy", Env: "NO_PROXY", Value: "LIST", Set: option.Into(&m.NoProxy, option.ParseText),
			Help: "hosts, domains and addresses that they are fetched from directly"},
	}, o.mutual.tickets.Table()...)
}

// idle names the options that do nothing because clients are not asked for certificates.
func (m *mutualOptions) idle(data *server.Config) (warnings []string) {
	for _, o := range []struct {
		name string
		set  bool
	}{
		{authoritiesOption, m.trust.Authorities != ""}, {listsOption, m.trust.Lists != ""}, {filterOption, data.Identities.Filter != nil},
	} {
		if o.set && data.TLS.ClientAuth == clientcert.None {
			warnings = append(warnings, o.name+" does nothing: --mutual-tls-auth (ROUTER_MUTUAL_TLS_AUTH) is none")
		}
	}
	return warnings
}
