package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"turnout/controller/source/cluster"
	"turnout/internal/logging"
	"turnout/tlsmux"
)

// settings lists every option of the router, bound to o. The order is that of
// the help text and of docs/options.md; a test compares them.
func settings(o *options) []setting {
	var all []setting
	for _, group := range [][]setting{
		listenSettings(o), adminSettings(o), sourceSettings(o), logSettings(o), selectionSettings(o), certificateSettings(o), tlsSettings(o), mutualSettings(o), admissionSettings(o), servingSettings(o),
		headerSettings(o), answerSettings(o), timeoutSettings(o), limitSettings(o),
	} {
		all = append(all, group...)
	}
	return all
}

func listenSettings(o *options) []setting {
	return []setting{
		{flag: "http-addr", value: "HOST:PORT", set: into(&o.server.HTTPAddr, parseListenAddr),
			help: "where plain HTTP is served; wins over --service-http-port"},
		{flag: "https-addr", value: "HOST:PORT", set: into(&o.server.HTTPSAddr, parseListenAddr),
			help: "where TLS is served; wins over --service-https-port"},
		{flag: "admin-addr", value: "HOST:PORT", set: into(&o.adminAddr, parseListenAddr),
			help: "where /healthz, /metrics and /routes are served; wins over --listen-addr and --stats-port"},
		{flag: "service-http-port", env: "ROUTER_SERVICE_HTTP_PORT", def: "80", value: "PORT", envStops: true,
			set: into(&o.httpPort, parsePort), help: "port of plain HTTP"},
		{flag: "service-https-port", env: "ROUTER_SERVICE_HTTPS_PORT", def: "443", value: "PORT", envStops: true,
			set: into(&o.httpsPort, parsePort), help: "port of TLS"},
		{flag: "ip-v4-v6-mode", env: "ROUTER_IP_V4_V6_MODE", def: "v4", value: "MODE",
			set:  words(&o.ipMode, "v4", "v6", "v4v6"),
			help: "addresses the two ports listen on: v4, v6 or v4v6"},
		{flag: "use-proxy-protocol", env: "ROUTER_USE_PROXY_PROTOCOL", def: "false", isBool: true, set: into(&o.server.ProxyProtocol, parseBool),
			help: "both ports require a PROXY protocol header, version 1 or 2, on every connection"},
		{flag: "proxy-protocol-trusted-source", env: "ROUTER_PROXY_PROTOCOL_TRUSTED_SOURCE", value: "LIST", envStops: true,
			set:  into(&o.server.ProxyTrusted, parsePrefixes),
			help: "addresses and CIDRs of the proxies whose PROXY header is believed; connections of others are closed; without it, all are believed"},
		{flag: "listen-addr", env: "ROUTER_LISTEN_ADDR", value: "HOST:PORT", envStops: true,
			set: into(&o.listenAddr, parseListenAddr), help: "the older name of --admin-addr; wins over --stats-port"},
		{flag: "stats-port", env: "STATS_PORT", def: "1936", value: "PORT", envStops: true,
			set: into(&o.statsPort, parsePort), help: "port of the admin server; 0 means 1936"},
		{flag: "threads", env: "ROUTER_THREADS", def: "0", value: "N", set: into(&o.server.Loops, parseThreads),
			help: "event loops; 0 means one per processor, or per processor of the CPU limit, rounded up"},
		{flag: "bind-ports-after-sync", env: "ROUTER_BIND_PORTS_AFTER_SYNC", def: "false", isBool: true, set: into(&o.bindAfterSync, parseBool),
			help: "open the two ports when the first complete table is there, not at start"},
		{flag: "handover-socket", value: "FILE", set: into(&o.handoverSocket, parseText),
			help: "UNIX socket by which a process with the same option takes the listening ports over from the one that runs; see docs/reliability.md"},
	}
}

func sourceSettings(o *options) []setting {
	return []setting{
		{flag: "manifests", value: "DIR", set: into(&o.manifests, parseText),
			help: "folder of YAML and JSON manifests to serve; watched"},
		{flag: "kubeconfig", value: "FILE", set: into(&o.kubeconfig, parseText),
			help: "how to reach the cluster to serve; without it and --manifests the cluster this pod runs in"},
		{flag: "log-level", def: "info", value: "LEVEL", set: into(&o.logLevel, logging.ParseLevel),
			help: "least important level that is logged: debug, info, warn or error"},
		{flag: "log-level-file", value: "FILE", set: into(&o.logLevelFile, parseText),
			help: "file with one of those words, which wins; read again at SIGHUP"},
	}
}

func selectionSettings(o *options) []setting {
	return []setting{
		{flag: "namespace", short: "n", value: "NAME", set: into(&o.namespace, parseText),
			help: "serve this namespace of the cluster only"},
		{flag: "labels", env: "ROUTE_LABELS", value: "SELECTOR", envStops: true, set: selector(&o.routeLabels, cluster.ParseLabels),
			help: "serve Routes with these labels only"},
		{flag: "fields", env: "ROUTE_FIELDS", value: "SELECTOR", envStops: true, set: selector(&o.routeFields, cluster.ParseFields),
			help: "serve Routes with these fields only"},
		{flag: "namespace-labels", env: "NAMESPACE_LABELS", value: "SELECTOR", envStops: true,
			set: selector(&o.namespaceLabels, cluster.ParseLabels), help: "serve namespaces with these labels only"},
		{flag: "project-labels", env: "PROJECT_LABELS", value: "SELECTOR", envStops: true,
			set: selector(&o.projectLabels, parseProjectLabels), help: "the same by another name; * is all of them"},
		{flag: "service-account", value: "NAMESPACE:NAME", set: into(&o.serviceAccount, parseAccount),
			help: "the account that must be allowed to read certificate Secrets; the default is the one whose token reaches the cluster, else openshift-ingress:router"},
		{flag: "resync-interval", env: "RESYNC_INTERVAL", def: "30m", value: "DURATION", envStops: true, set: into(&o.resync, parseInterval),
			help: "how long a permission to read a Secret counts; a tenth of it is how long status that others write too is left to them"},
		{flag: "update-status", env: "ROUTER_UPDATE_STATUS", def: "true", isBool: true, set: into(&o.updateStatus, parseBool),
			help: "write to the status of Routes of a cluster what becomes of them"},
		{flag: "clear-stale-status", env: "ROUTER_CLEAR_STALE_STATUS", def: "true", isBool: true, set: into(&o.clearStale, parseBool),
			help: "remove this router from the status of Routes that it does not select any more"},
	}
}

func certificateSettings(o *options) []setting {
	return []setting{
		{flag: "default-certificate", env: "DEFAULT_CERTIFICATE", value: "PEM", set: into(&o.certificate.Content, parseText),
			help: "certificate and key of hosts without their own, as PEM text"},
		{flag: "default-certificate-path", env: "DEFAULT_CERTIFICATE_PATH", value: "FILE", set: into(&o.certificate.Path, parseText),
			help: "the same from a file; used when --default-certificate is not given"},
		{flag: "default-certificate-dir", env: "DEFAULT_CERTIFICATE_DIR", value: "DIR", set: into(&o.certificate.Dir, parseText),
			help: "the same from tls.crt and tls.key in a folder; used when neither of the others is given"},
		{flag: "default-destination-ca-path", env: "DEFAULT_DESTINATION_CA_PATH", value: "FILE", set: into(&o.destinationCAPath, parseText),
			help: "authorities that re-encrypt routes without destinationCACertificate verify pods against; watched"},
		{flag: "strict-sni", env: "ROUTER_STRICT_SNI", def: "false", isBool: true, set: into(&o.server.StrictSNI, parseBool),
			help: "refuse TLS clients whose server name no certificate covers"},
		{flag: "disable-http2", env: "ROUTER_DISABLE_HTTP2", def: "false", isBool: true, set: into(&o.server.TLS.DisableHTTP2, parseBool),
			help: "do not offer HTTP/2 to TLS clients and to the endpoints of re-encrypt routes; clients that begin with it unasked are still served"},
	}
}

// tlsSettings are what TLS towards clients looks like. What was asked for and crypto/tls does not have is told.
func tlsSettings(o *options) []setting {
	note := func(what string, names []string) {
		if len(names) > 0 {
			o.notes = append(o.notes, what+": "+strings.Join(names, ", "))
		}
	}
	return []setting{
		{flag: "ssl-min-version", env: "SSL_MIN_VERSION", def: "TLSv1.2", value: "VERSION", envStops: true,
			set: into(&o.server.TLS.MinVersion, tlsmux.ParseVersion), help: "oldest version of TLS for clients: TLSv1.0, TLSv1.1, TLSv1.2 or TLSv1.3"},
		{flag: "ssl-max-version", env: "SSL_MAX_VERSION", value: "VERSION", envStops: true,
			set: into(&o.server.TLS.MaxVersion, tlsmux.ParseVersion), help: "newest version of TLS for clients"},
		{flag: "ciphers", env: "ROUTER_CIPHERS", def: "intermediate", value: "LIST", envStops: true,
			help: "cipher suites of TLS 1.2 and before: modern, intermediate, old, or a cipher list of OpenSSL",
			set: func(s string) (err error) {
				var unknown []string
				o.server.TLS.CipherSuites, unknown, err = tlsmux.ParseCiphers(s)
				o.suitesLeftOut = tlsmux.CiphersLacking(s)
				note("--ciphers (ROUTER_CIPHERS) names what Go does not have", unknown)
				return err
			}},
		{flag: "ciphersuites", env: "ROUTER_CIPHERSUITES", value: "LIST", envStops: true,
			help: "cipher suites of TLS 1.3; Go always offers all three of its own",
			set: func(s string) error {
				unwanted, unknown, err := tlsmux.ParseSuites13(s)
				note("--ciphersuites (ROUTER_CIPHERSUITES) names suites that Go does not have", unknown)
				note("--ciphersuites (ROUTER_CIPHERSUITES) leaves out suites that Go offers all the same", unwanted)
				return err
			}},
		{flag: "curves", env: "ROUTER_CURVES", value: "LIST", envStops: true,
			help: "key exchange groups separated by colons, such as X25519MLKEM768:X25519:secp256r1",
			set: func(s string) (err error) {
				var unknown []string
				o.server.TLS.Curves, unknown, err = tlsmux.ParseGroups(s)
				note("--curves (ROUTER_CURVES) names groups that Go does not have", unknown)
				return err
			}},
	}
}

func admissionSettings(o *options) []setting {
	return []setting{
		{flag: "name", env: "ROUTER_SERVICE_NAME", def: "public", value: "NAME", set: into(&o.name, parseText),
			help: "the router's name in route status"},
		{flag: "router-canonical-hostname", env: "ROUTER_CANONICAL_HOSTNAME", value: "HOST", envStops: true,
			set: into(&o.canonicalHostname, parseDNSName), help: "host name of the router itself, written to route status"},
		{flag: "router-domain", env: "ROUTER_DOMAIN", value: "DOMAIN", set: into(&o.domain, parseText),
			help: "domain that completes spec.subdomain"},
		{flag: "hostname-template", env: "ROUTER_SUBDOMAIN", value: "TEMPLATE", set: into(&o.hostnameTemplate, parseText),
			help: "host of routes without one, made of ${name} and ${namespace}"},
		{flag: "override-hostname", env: "ROUTER_OVERRIDE_HOSTNAME", def: "false", isBool: true, set: into(&o.overrideHostname, parseBool),
			help: "use --hostname-template for every route"},
		{flag: "override-domains", env: "ROUTER_OVERRIDE_DOMAINS", value: "LIST", set: list(&o.overrideDomains),
			help: "use --hostname-template for hosts within these domains"},
		{flag: "denied-domains", env: "ROUTER_DENIED_DOMAINS", value: "LIST", set: list(&o.deniedDomains),
			help: "domains whose hosts are rejected; wins over --allowed-domains"},
		{flag: "allowed-domains", env: "ROUTER_ALLOWED_DOMAINS", value: "LIST", set: list(&o.allowedDomains),
			help: "when given, hosts outside these domains are rejected"},
		{flag: "allow-wildcard-routes", env: "ROUTER_ALLOW_WILDCARD_ROUTES", def: "false", isBool: true,
			set: into(&o.allowWildcardRoutes, parseBool), help: "admit routes with wildcardPolicy Subdomain"},
		{flag: "disable-namespace-ownership-check", env: "ROUTER_DISABLE_NAMESPACE_OWNERSHIP_CHECK", def: "false", isBool: true,
			set: into(&o.disableOwnership, parseBool), help: "let routes of several namespaces share a host"},
		{flag: "extended-validation", env: "EXTENDED_VALIDATION", def: "true", isBool: true,
			set: into(&o.extendedValidation, parseBool), help: "validate the tls section of routes in full"},
		{flag: "allow-external-certificates", env: "ROUTER_ENABLE_EXTERNAL_CERTIFICATE", def: "true", isBool: true,
			set: into(&o.externalCertificates, parseBool), help: "serve certificates of Secrets that routes refer to"},
		{flag: "upgrade-validation", env: "UPGRADE_VALIDATION", def: "true", isBool: true, set: into(&o.upgradeValidation, parseBool),
			help: "say in route status whether later versions can serve a route"},
		{flag: "debug-upgrade-validation-force-add-condition", env: "DEBUG_UPGRADE_VALIDATION_FORCE_ADD_CONDITION", def: "false", isBool: true,
			set: into(&o.forceUnservable, parseBool), help: "say of every admitted route that they cannot, to see what comes of it"},
		{flag: "debug-upgrade-validation-force-remove-condition", env: "DEBUG_UPGRADE_VALIDATION_FORCE_REMOVE_CONDITION", def: "false", isBool: true,
			set: into(new(bool), parseBool), help: "say of every route that they can, which is so anyway; the flag above wins"},
	}
}

func servingSettings(o *options) []setting {
	algorithms := []string{"random", "roundrobin", "leastconn", "source"}
	return []setting{
		{flag: "load-balance-algorithm", env: "ROUTER_LOAD_BALANCE_ALGORITHM", value: "NAME", set: words(&o.balance, algorithms...),
			help: "algorithm of routes that do not choose: random (the default), roundrobin, leastconn or source"},
		{flag: "tcp-balance-scheme", env: "ROUTER_TCP_BALANCE_SCHEME", value: "NAME", set: words(&o.tcpBalance, algorithms...),
			help: "the same for passthrough routes, before --load-balance-algorithm; the default is source"},
		{flag: "cookie-name", env: "ROUTER_COOKIE_NAME", value: "NAME", set: into(&o.cookieName, parseCookieName),
			help: "name of the sticky cookie of routes that do not choose; the default is a hash"},
		{flag: "set-forwarded-headers", env: "ROUTER_SET_FORWARDED_HEADERS", def: "append", value: "POLICY",
			set:  words(&o.forward, "append", "replace", "if-none", "never"),
			help: "X-Forwarded-* and Forwarded headers: append, replace, if-none or never"},
	}
}

func timeoutSettings(o *options) []setting {
	timeout := func(to *time.Duration, flag, env, def, help string) setting {
		return setting{flag: flag, env: env, def: def, value: "TIME", set: into(to, parseTimespec), help: help}
	}
	return []setting{
		timeout(&o.server.Proxy.Timeouts.Connect, "default-connect-timeout", "ROUTER_DEFAULT_CONNECT_TIMEOUT", "5s", "one attempt to connect a pod"),
		timeout(&o.server.Proxy.Timeouts.Client, "default-client-timeout", "ROUTER_DEFAULT_CLIENT_TIMEOUT", "30s", "a client that neither sends nor reads"),
		timeout(&o.serverTimeout, "default-server-timeout", "ROUTER_DEFAULT_SERVER_TIMEOUT", "30s", "a pod that is silent"),
		timeout(&o.tunnelTimeout, "default-tunnel-timeout", "ROUTER_DEFAULT_TUNNEL_TIMEOUT", "1h", "an idle WebSocket or passthrough connection"),
		timeout(&o.server.Proxy.Timeouts.ClientFin, "client-fin-timeout", "ROUTER_CLIENT_FIN_TIMEOUT", "1s", "a tunnel whose client has closed its half"),
		timeout(&o.server.Proxy.Timeouts.RequestHead, "slowloris-timeout", "ROUTER_SLOWLORIS_TIMEOUT", "10s", "receiving a whole request head"),
		timeout(&o.server.Proxy.Timeouts.KeepAlive, "slowloris-http-keepalive", "ROUTER_SLOWLORIS_HTTP_KEEPALIVE", "300s", "waiting for the next request"),
		timeout(&o.checkInterval, "backend-check-interval", "ROUTER_BACKEND_CHECK_INTERVAL", "5s", "between two health checks of a pod; routes with one pod have none"),
		timeout(&o.server.Proxy.Timeouts.ClientHello, "inspect-delay", "ROUTER_INSPECT_DELAY", "5s", "waiting for the first bytes of TLS"),
		{flag: "graceful-shutdown-delay", env: "ROUTER_GRACEFUL_SHUTDOWN_DELAY", value: "DURATION",
			set: into(&o.shutdownDelay, parseDelay), help: "serving on after SIGTERM, not ready, before connections are closed"},
		{flag: "max-shutdown-timeout", env: "ROUTER_MAX_SHUTDOWN_TIMEOUT", def: "30", value: "SECONDS",
			set: into(&o.server.Proxy.Timeouts.Drain, parseSeconds), help: "finishing running requests after that"},
	}
}

// into adapts a parser to a setting that stores its result.
func into[T any](to *T, parse func(string) (T, error)) func(string) error {
	return func(s string) error {
		v, err := parse(s)
		if err == nil {
			*to = v
		}
		return err
	}
}

// words is into for one of a few words.
func words(to *string, allowed ...string) func(string) error {
	return into(to, func(s string) (string, error) { return parseWord(s, allowed...) })
}

// list is into for a comma list.
func list(to *[]string) func(string) error {
	return into(to, func(s string) ([]string, error) { return parseList(s), nil })
}

// selector is into for a Kubernetes selector.
func selector(to *string, check func(string) error) func(string) error {
	return into(to, func(s string) (string, error) {
		if err := check(s); err != nil {
			return "", fmt.Errorf("allowed: a Kubernetes selector such as type=public,env!=test: %w", err)
		}
		return s, nil
	})
}

// parseProjectLabels is ParseLabels with * for all.
func parseProjectLabels(s string) error {
	if s == "*" {
		return nil
	}
	return cluster.ParseLabels(s)
}

func parseText(s string) (string, error) { return s, nil }

// parseDelay reads a Go duration that is not negative.
func parseDelay(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, errors.New("allowed: a Go duration such as 45s or 1m30s, not negative")
	}
	return d, nil
}

// parseInterval reads a Go duration above zero.
func parseInterval(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, errors.New("allowed: a Go duration above 0 such as 30m or 1h30m")
	}
	return d, nil
}

// parseAccount reads a service account.
func parseAccount(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	return s, cluster.ParseAccount(s)
}

// parseSeconds reads a whole number of seconds from 1 on.
func parseSeconds(s string) (time.Duration, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || n == 0 || strings.HasPrefix(s, "+") {
		return 0, errors.New("allowed: a whole number of seconds from 1 on")
	}
	return time.Duration(n) * time.Second, nil
}
