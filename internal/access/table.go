package access

import (
	"turnout/internal/admin"
	"turnout/internal/option"
	"turnout/tlsmux"
)

// Table are the options, bound to o.
func (o *Options) Table() []option.Option {
	return []option.Option{
		{Flag: "stats-user", Env: "STATS_USERNAME", Value: "NAME", Secret: true, Set: option.Into(&o.User, option.ParseText),
			Help: "user who may read /metrics and /routes"},
		{Flag: "stats-password", Env: "STATS_PASSWORD", Value: "TEXT", Secret: true, Set: option.Into(&o.Password, option.ParseText), Help: "the password of that user"},
		{Flag: "stats-user-file", Env: "STATS_USERNAME_FILE", Value: "FILE", Set: option.Into(&o.UserFile, option.ParseText),
			Help: "file with the user, to the last byte; counts together with --stats-password-file only, and wins then"},
		{Flag: "stats-password-file", Env: "STATS_PASSWORD_FILE", Value: "FILE", Set: option.Into(&o.PasswordFile, option.ParseText),
			Help: "file with the password, to the last byte"},
		{Flag: "admin-open", IsBool: true, Set: func(s string) error {
			open, err := option.ParseBool(s)
			o.Open = &open
			return err
		}, Help: "nobody needs a login for /metrics and /routes; otherwise a router of a cluster asks everybody, and one of manifests without a user and password every client on another machine"},
		{Flag: "admin-hosts", Value: "LIST", Set: option.Into(&o.Hosts, ParseHosts),
			Help: "host names that the admin port accepts without a login, besides addresses, names of one label and Services of the router's namespace"},
		{Flag: "metrics-ready-http-url", Env: "ROUTER_METRICS_READY_HTTP_URL", Value: "URL", EnvStops: true, Set: option.Into(&o.ReadyURL, admin.ParseReadyURL),
			Help: "URL that must answer, besides the event loops, for the router to be ready"},
		{Flag: "metrics-tls-cert-file", Env: "ROUTER_METRICS_TLS_CERT_FILE", Value: "FILE", Set: option.Into(&o.CertFile, option.ParseText),
			Help: "certificate with which the admin port speaks TLS too; read again when 30 seconds are over"},
		{Flag: "metrics-tls-key-file", Env: "ROUTER_METRICS_TLS_KEY_FILE", Value: "FILE", Set: option.Into(&o.KeyFile, option.ParseText),
			Help: "the key of that certificate"},
		{Flag: "metrics-tls-min-version", Env: "ROUTER_METRICS_TLS_MIN_VERSION", Def: "VersionTLS12", Value: "VERSION", EnvStops: true,
			Set: option.Into(&o.MinVersion, tlsmux.ParseGoVersion), Help: "oldest version of TLS there: VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13"},
		{Flag: "metrics-tls-ciphers", Env: "ROUTER_METRICS_TLS_CIPHERS", Value: "LIST", EnvStops: true, Set: option.Into(&o.Suites, tlsmux.ParseKnownCiphers),
			Help: "cipher suites there, names of OpenSSL or IANA separated by colons"},
		{Flag: "metrics-tls-curves", Env: "ROUTER_METRICS_TLS_CURVES", Value: "LIST", EnvStops: true, Set: option.Into(&o.Groups, tlsmux.ParseKnownGroups),
			Help: "key exchange groups there, separated by colons or commas"},
	}
}
