package main

import (
	"strings"
	"time"

	"turnout/controller/ingresscontroller"
	"turnout/controller/shard/member"
	"turnout/controller/source/cluster"
	"turnout/internal/gateways"
	"turnout/internal/logging"
	"turnout/internal/option"
	"turnout/internal/option/admission"
	"turnout/internal/option/ingresses"
	"turnout/internal/option/kubectl"
	"turnout/tlsmux"
)

// settings lists every option of the router, bound to o. The order is that of
// the help text and of docs/options.md; a test compares them.
func settings(o *options) []option.Option {
	var all []option.Option
	for _, group := range []struct {
		name  string
		table []option.Option
	}{
		{"Ports", listenSettings(o)}, {"Admin port", o.adminPort.Table()}, {"Metrics", o.metrics.Table()}, {"Objects and log", sourceSettings(o)},
		{"Log of requests", o.logs.Table()}, {"Traces", o.tracing.Table()}, {kubectl.Group, kubectl.Settings(&o.reach)}, {"Objects of a cluster", selectionSettings(o)},
		{"Certificates", certificateSettings(o)}, {"TLS", tlsSettings(o)}, {"Certificates of clients", mutualSettings(o)}, {admission.Group, admission.Table(&o.control)}, {ingresses.Group, o.ingresses.Table(&o.control)}, {gateways.Group, o.gateways.Table()},
		{"Serving", servingSettings(o)}, {"Headers", headerSettings(o)}, {"Answers", answerSettings(o)}, {"Timeouts", timeoutSettings(o)}, {"Limits", limitSettings(o)},
	} {
		for _, s := range group.table {
			s.Group = group.name
			all = append(all, s)
		}
	}
	return all
}

func listenSettings(o *options) []option.Option {
	return []option.Option{
		{Flag: "http-addr", Value: "HOST:PORT", Set: option.Into(&o.server.HTTPAddr, option.ParseListenAddr),
			Help: "where plain HTTP is served; wins over --service-http-port"},
		{Flag: "https-addr", Value: "HOST:PORT", Set: option.Into(&o.server.HTTPSAddr, option.ParseListenAddr),
			Help: "where TLS is served; wins over --service-https-port"},
		{Flag: "admin-addr", Value: "HOST:PORT", Set: option.Into(&o.adminAddr, option.ParseListenAddr),
			Help: "where /healthz, /metrics and /routes are served; wins over --listen-addr and --stats-port"},
		{Flag: "service-http-port", Env: "ROUTER_SERVICE_HTTP_PORT", Def: "80", Value: "PORT", EnvStops: true,
			Set: option.Into(&o.httpPort, option.ParsePort), Help: "port of plain HTTP"},
		{Flag: "service-https-port", Env: "ROUTER_SERVICE_HTTPS_PORT", Def: "443", Value: "PORT", EnvStops: true,
			Set: option.Into(&o.httpsPort, option.ParsePort), Help: "port of TLS"},
		{Flag: "ip-v4-v6-mode", Env: "ROUTER_IP_V4_V6_MODE", Def: "v4", Value: "MODE",
			Set:  option.Words(&o.ipMode, "v4", "v6", "v4v6"),
			Help: "addresses the two ports listen on: v4, v6 or v4v6"},
		{Flag: "use-proxy-protocol", Env: "ROUTER_USE_PROXY_PROTOCOL", Def: "false", IsBool: true, Set: option.Into(&o.server.ProxyProtocol, option.ParseBool),
			Help: "both ports require a PROXY protocol header, version 1 or 2, on every connection"},
		{Flag: "proxy-protocol-trusted-source", Env: "ROUTER_PROXY_PROTOCOL_TRUSTED_SOURCE", Value: "LIST", EnvStops: true,
			Set:  option.Into(&o.server.ProxyTrusted, option.ParsePrefixes),
			Help: "addresses and CIDRs of the proxies whose PROXY header is believed; connections of others are closed; without it, all are believed"},
		{Flag: "listen-addr", Env: "ROUTER_LISTEN_ADDR", Value: "HOST:PORT", EnvStops: true,
			Set: option.Into(&o.listenAddr, option.ParseListenAddr), Help: "the older name of --admin-addr; wins over --stats-port"},
		{Flag: "stats-port", Env: "STATS_PORT", Def: "1936", Value: "PORT", EnvStops: true,
			Set: option.Into(&o.statsPort, option.ParsePort), Help: "port of the admin server; 0 means 1936"},
		{Flag: "threads", Env: "ROUTER_THREADS", Def: "0", Value: "N", Set: option.Into(&o.server.Loops, option.ParseThreads),
			Help: "event loops; 0 means one per processor, or per processor of the CPU limit, rounded up"},
		{Flag: "bind-ports-after-sync", Env: "ROUTER_BIND_PORTS_AFTER_SYNC", Def: "false", IsBool: true, Set: option.Into(&o.bindAfterSync, option.ParseBool),
			Help: "open the two ports when the first complete table is there, not at start"},
		{Flag: "handover-socket", Value: "FILE", Set: option.Into(&o.handoverSocket, option.ParseText),
			Help: "UNIX socket by which a process with the same option takes the listening ports over from the one that runs; see docs/reliability.md"},
	}
}

func sourceSettings(o *options) []option.Option {
	return []option.Option{
		{Flag: "manifests", Value: "DIR", Set: option.Into(&o.manifests, option.ParseText),
			Help: "folder of YAML and JSON manifests to serve; watched"},
		{Flag: "ingress-controller", Env: "TURNOUT_INGRESS_CONTROLLER", Value: "NAMESPACE/NAME", EnvStops: true, Set: option.Into(&o.ingressController, ingresscontroller.ReadKey),
			Help: "the IngressController that options follow where neither flags nor variables give them, without a restart; see docs/ingress-controller.md"},
		{Flag: "backend", Value: "NAMESPACE/SERVICE=PORT", Repeats: true, Set: func(s string) error { return o.backends.Add(s) },
			Help: "with --manifests: the service has an endpoint on this port of 127.0.0.1, as if a pod ran there; may be given several times"},
		{Flag: "log-level", Def: "info", Value: "LEVEL", Set: option.Into(&o.logLevel, logging.ParseLevel),
			Help: "least important level that is logged: debug, info, warn or error"},
		{Flag: "log-level-file", Value: "FILE", Set: option.Into(&o.logLevelFile, option.ParseText),
			Help: "file with one of those words, which wins; read again at SIGHUP"},
		{Flag: "log-format", Def: "auto", Value: "FORMAT", Set: option.Words(&o.logFormat, "auto", "json", "console"),
			Help: "lines of the log: json, console (for people), or auto: console when the standard error is a terminal, json otherwise"},
	}
}

func selectionSettings(o *options) []option.Option {
	return []option.Option{
		{Flag: "namespace", Short: "n", Value: "NAME", Set: option.Into(&o.namespace, cluster.ParseNamespace),
			Help: "serve this namespace of the cluster only"},
		{Flag: "labels", Env: "ROUTE_LABELS", Value: "SELECTOR", EnvStops: true, Set: option.Into(&o.routeLabels, cluster.Selector(cluster.ParseLabels)),
			SetSaid: func(s *option.Said) error { o.control.RouteLabels = s.Value; return nil },
			Help:    "serve Routes with these labels only"},
		{Flag: "fields", Env: "ROUTE_FIELDS", Value: "SELECTOR", EnvStops: true, Set: option.Into(&o.routeFields, cluster.Selector(cluster.ParseFields)),
			Help: "serve Routes with these fields only"},
		{Flag: "namespace-labels", Env: "NAMESPACE_LABELS", Value: "SELECTOR", EnvStops: true,
			SetSaid: func(s *option.Said) error { o.control.NamespaceLabels = s.Value; return nil },
			Set:     option.Into(&o.namespaceLabels, cluster.Selector(cluster.ParseLabels)), Help: "serve namespaces with these labels only"},
		{Flag: "project-labels", Env: "PROJECT_LABELS", Value: "SELECTOR", EnvStops: true,
			Set: option.Into(&o.projectLabels, cluster.Selector(cluster.ParseProjectLabels)), Help: "the same by another name; * is all of them"},
		{Flag: "router", Env: "TURNOUT_ROUTER", Value: "NAME", EnvStops: true, Set: option.Into(&o.replica.Router, member.ParseName),
			Help: "serve the Routes that the scheduler has bound to this Router only, and report to it; see docs/sharding.md"},
		{Flag: "router-addresses", Env: "POD_IP", Value: "LIST", Set: option.List(&o.replica.Addresses), Help: "with --router: addresses at which clients reach this process, for DNS"},
		{Flag: "replica", Env: "POD_NAME", Value: "NAME", Set: option.Into(&o.replica.Replica, option.ParseText),
			Help: "with --router: the name of this process among the replicas of the Router; the host name if it is not given"},
		{Flag: "service-account", Value: "NAMESPACE:NAME", Set: option.Into(&o.serviceAccount, cluster.Account),
			Help: "the account that must be allowed to read certificate Secrets; the default is the one whose token reaches the cluster, else openshift-ingress:router"},
		{Flag: "resync-interval", Env: "RESYNC_INTERVAL", Def: "30m", Value: "DURATION", EnvStops: true, Set: option.Into(&o.resync, option.ParseInterval),
			Help: "how long a permission to read a Secret counts; a tenth of it is how long status that others write too is left to them"},
		{Flag: "update-status", Env: "ROUTER_UPDATE_STATUS", Def: "true", IsBool: true, Set: option.Into(&o.updateStatus, option.ParseBool),
			Help: "write to the status of Routes of a cluster what becomes of them"},
		{Flag: "clear-stale-status", Env: "ROUTER_CLEAR_STALE_STATUS", Def: "true", IsBool: true, Set: option.Into(&o.clearStale, option.ParseBool),
			Help: "remove this router from the status of Routes that it does not select any more"},
	}
}

func certificateSettings(o *options) []option.Option {
	return []option.Option{
		{Flag: "default-certificate", Env: "DEFAULT_CERTIFICATE", Value: "PEM", Secret: true, Set: option.Into(&o.certificate.Content, option.ParseText),
			SetSaid: func(s *option.Said) error {
				o.certificate.Content = string(s.Content)
				return tlsmux.CheckDefaultCertificate(o.certificate)
			},
			Help: "certificate and key of hosts without their own, as PEM text"},
		{Flag: "default-certificate-path", Env: "DEFAULT_CERTIFICATE_PATH", Value: "FILE", Set: option.Into(&o.certificate.Path, option.ParseText),
			Help: "the same from a file; used when --default-certificate is not given"},
		{Flag: "default-certificate-dir", Env: "DEFAULT_CERTIFICATE_DIR", Value: "DIR", Set: option.Into(&o.certificate.Dir, option.ParseText),
			Help: "the same from tls.crt and tls.key in a folder; used when neither of the others is given"},
		{Flag: "default-destination-ca-path", Env: "DEFAULT_DESTINATION_CA_PATH", Value: "FILE", Set: option.Into(&o.destinationCAPath, option.ParseText),
			Help: "authorities that re-encrypt routes without destinationCACertificate verify pods against; watched"},
		{Flag: "strict-sni", Env: "ROUTER_STRICT_SNI", Def: "false", IsBool: true, Set: option.Into(&o.server.StrictSNI, option.ParseBool),
			Help: "refuse TLS clients whose server name no certificate covers"},
		{Flag: "disable-http2", Env: "ROUTER_DISABLE_HTTP2", Def: "false", IsBool: true, Set: option.Into(&o.server.TLS.DisableHTTP2, option.ParseBool),
			Help: "do not offer HTTP/2 to TLS clients and to the endpoints of re-encrypt routes; clients that begin with it unasked are still served"},
	}
}

// tlsSettings are what TLS towards clients looks like. What was asked for and crypto/tls does not have is logged.
func tlsSettings(o *options) []option.Option {
	note := func(what string, names []string) {
		if len(names) > 0 {
			o.notes = append(o.notes, what+": "+strings.Join(names, ", "))
		}
	}
	return []option.Option{
		{Flag: "ssl-min-version", Env: "SSL_MIN_VERSION", Def: "TLSv1.2", Value: "VERSION", EnvStops: true,
			Set: option.Into(&o.server.TLS.MinVersion, tlsmux.ParseVersion), Help: "oldest version of TLS for clients: TLSv1.0, TLSv1.1, TLSv1.2 or TLSv1.3"},
		{Flag: "ssl-max-version", Env: "SSL_MAX_VERSION", Value: "VERSION", EnvStops: true,
			Set: option.Into(&o.server.TLS.MaxVersion, tlsmux.ParseVersion), Help: "newest version of TLS for clients"},
		{Flag: "ciphers", Env: "ROUTER_CIPHERS", Def: "intermediate", Value: "LIST", EnvStops: true,
			Help: "cipher suites of TLS 1.2 and before: modern, intermediate, old, or a cipher list of OpenSSL",
			Set: func(s string) (err error) {
				var unknown []string
				o.server.TLS.CipherSuites, unknown, err = tlsmux.ParseCiphers(s)
				o.suitesLeftOut = tlsmux.CiphersLacking(s)
				note("--ciphers (ROUTER_CIPHERS) names what Go does not have", unknown)
				return err
			}},
		{Flag: "ciphersuites", Env: "ROUTER_CIPHERSUITES", Value: "LIST", EnvStops: true,
			Help: "cipher suites of TLS 1.3; Go always offers all three of its own",
			Set: func(s string) error {
				unwanted, unknown, err := tlsmux.ParseSuites13(s)
				note("--ciphersuites (ROUTER_CIPHERSUITES) names suites that Go does not have", unknown)
				note("--ciphersuites (ROUTER_CIPHERSUITES) leaves out suites that Go offers all the same", unwanted)
				return err
			}},
		{Flag: "curves", Env: "ROUTER_CURVES", Value: "LIST", EnvStops: true,
			Help: "key exchange groups separated by colons, such as X25519MLKEM768:X25519:secp256r1",
			Set: func(s string) (err error) {
				var unknown []string
				o.server.TLS.Curves, unknown, err = tlsmux.ParseGroups(s)
				note("--curves (ROUTER_CURVES) names groups that Go does not have", unknown)
				return err
			}},
	}
}

func servingSettings(o *options) []option.Option {
	algorithms := []string{"random", "roundrobin", "leastconn", "source"}
	return []option.Option{
		{Flag: "load-balance-algorithm", Env: "ROUTER_LOAD_BALANCE_ALGORITHM", Value: "NAME", Set: option.Words(&o.control.LoadBalance, algorithms...),
			Help: "algorithm of routes that do not choose: random (the default), roundrobin, leastconn or source"},
		{Flag: "tcp-balance-scheme", Env: "ROUTER_TCP_BALANCE_SCHEME", Value: "NAME", Set: option.Words(&o.control.TCPBalance, algorithms...),
			Help: "the same for passthrough routes, before --load-balance-algorithm; the default is source"},
		{Flag: "cookie-name", Env: "ROUTER_COOKIE_NAME", Value: "NAME", Set: option.Into(&o.control.CookieName, option.ParseCookieName),
			Help: "name of the sticky cookie of routes that do not choose; the default is a hash"},
		{Flag: "set-forwarded-headers", Env: "ROUTER_SET_FORWARDED_HEADERS", Def: "append", Value: "POLICY",
			Set:  option.Words(&o.control.SetForwardedHeaders, "append", "replace", "if-none", "never"),
			Help: "X-Forwarded-* and Forwarded headers: append, replace, if-none or never"},
	}
}

func timeoutSettings(o *options) []option.Option {
	timeout := func(to *time.Duration, flag, env, def, help string) option.Option {
		return option.Option{Flag: flag, Env: env, Def: def, Value: "TIME", Set: option.Into(to, option.ParseTimespec), Help: help}
	}
	return []option.Option{
		timeout(&o.server.Proxy.Timeouts.Connect, "default-connect-timeout", "ROUTER_DEFAULT_CONNECT_TIMEOUT", "5s", "one attempt to connect a pod"),
		timeout(&o.server.Proxy.Timeouts.Client, "default-client-timeout", "ROUTER_DEFAULT_CLIENT_TIMEOUT", "30s", "a client that neither sends nor reads"),
		timeout(&o.control.ServerTimeout, "default-server-timeout", "ROUTER_DEFAULT_SERVER_TIMEOUT", "30s", "a pod that is silent"),
		timeout(&o.control.TunnelTimeout, "default-tunnel-timeout", "ROUTER_DEFAULT_TUNNEL_TIMEOUT", "1h", "an idle WebSocket or passthrough connection"),
		timeout(&o.server.Proxy.Timeouts.ClientFin, "client-fin-timeout", "ROUTER_CLIENT_FIN_TIMEOUT", "1s", "a tunnel whose client has closed its half"),
		timeout(&o.server.Proxy.Timeouts.RequestHead, "slowloris-timeout", "ROUTER_SLOWLORIS_TIMEOUT", "10s", "receiving a whole request head"),
		timeout(&o.server.Proxy.Timeouts.KeepAlive, "slowloris-http-keepalive", "ROUTER_SLOWLORIS_HTTP_KEEPALIVE", "300s", "waiting for the next request"),
		timeout(&o.control.CheckInterval, "backend-check-interval", "ROUTER_BACKEND_CHECK_INTERVAL", "5s", "between two health checks of a pod; routes with one pod have none"),
		timeout(&o.server.Proxy.Timeouts.ClientHello, "inspect-delay", "ROUTER_INSPECT_DELAY", "5s", "waiting for the first bytes of TLS"),
		{Flag: "graceful-shutdown-delay", Env: "ROUTER_GRACEFUL_SHUTDOWN_DELAY", Value: "DURATION",
			Set: option.Into(&o.shutdownDelay, option.ParseDelay), Help: "serving on after SIGTERM, not ready, before connections are closed"},
		{Flag: "max-shutdown-timeout", Env: "ROUTER_MAX_SHUTDOWN_TIMEOUT", Def: "30", Value: "SECONDS",
			Set: option.Into(&o.server.Proxy.Timeouts.Drain, option.ParseSeconds), Help: "finishing running requests after that"},
	}
}
