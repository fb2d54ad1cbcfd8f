package main

import (
	"time"

	"turnout/internal/option"
	"turnout/internal/server"
	"turnout/proxy"
)

// answerOptions are the options about the router's own answers and about bodies that are not in the configuration of the request path
// as they are.
type answerOptions struct {
	pages         server.Pages
	compress      bool
	compressTypes string
	metricsType   string        // haproxy: the monitor path is served
	hardStop      time.Duration // 0: only --max-shutdown-timeout counts
}

// monitorPath is what load balancers of the HAProxy router ask on the plain port.
const monitorPath = "/_______internal_router_healthz"

func answerSettings(o *options) []option.Option {
	a := &o.answers
	return []option.Option{
		{Flag: "metrics-type", Env: "ROUTER_METRICS_TYPE", Value: "TYPE", EnvStops: true, Set: option.Words(&a.metricsType, "haproxy"),
			Help: "haproxy: answer probes of " + monitorPath + " on the plain port; metrics are there without it"},
		{Flag: "http-ignore-probes", Env: "ROUTER_HTTP_IGNORE_PROBES", Def: "false", IsBool: true, Set: option.Into(&o.server.IgnoreProbes, option.ParseBool),
			Help: "close connections that never sent a byte without an answer and a line in the log"},
		{Flag: "dont-log-null", Env: "ROUTER_DONT_LOG_NULL", Def: "false", IsBool: true, Set: option.Into(&o.server.DontLogNull, option.ParseBool),
			Help: "leave connections that never sent a byte out of the access log"},
		{Flag: "abort-on-close", Env: "ROUTER_ABORT_ON_CLOSE", Def: "false", IsBool: true, Set: option.Into(&o.server.Proxy.AbortOnClose, option.ParseBool),
			Help: "drop requests that wait for a pod, in the queue or for a connection, when their client has ended its sending"},
		{Flag: "idle-close-on-response", Env: "ROUTER_IDLE_CLOSE_ON_RESPONSE", Def: "false", IsBool: true, Set: option.Into(&o.server.KeepIdle, option.ParseBool),
			Help: "when the router stops, close idle connections after one more answer instead of at once"},
		{Flag: "hard-stop-after", Env: "ROUTER_HARD_STOP_AFTER", Value: "TIME", Set: option.Into(&a.hardStop, option.ParseTimespec),
			Help: "cut what is still running so long after the router began to close connections; the shorter of this and --max-shutdown-timeout"},
		{Flag: "errorfile-503", Env: "ROUTER_ERRORFILE_503", Value: "FILE", Set: option.Into(&a.pages.Unavailable, option.ParseText),
			SetSaid: func(s *option.Said) error {
				a.pages.Unavailable, a.pages.UnavailableContent = s.Value, s.Content
				return nil
			},
			Help: "HTTP response to send instead of the 503 page"},
		{Flag: "errorfile-404", Env: "ROUTER_ERRORFILE_404", Value: "FILE", Set: option.Into(&a.pages.NotFound, option.ParseText),
			SetSaid: func(s *option.Said) error { a.pages.NotFound, a.pages.NotFoundContent = s.Value, s.Content; return nil },
			Help:    "HTTP response to send for requests without a route; without it they get the 503 page"},
		{Flag: "reason-header", Def: "false", IsBool: true, Set: option.Into(&o.server.Proxy.ReasonHeader, option.ParseBool),
			Help: "say why in the header X-Turnout-Reason of the router's own answers, with the words of the access log; pods cannot send it then"},
		{Flag: "enable-compression", Env: "ROUTER_ENABLE_COMPRESSION", Def: "false", IsBool: true, Set: option.Into(&a.compress, option.ParseBool),
			Help: "compress responses with gzip"},
		{Flag: "compression-mime", Env: "ROUTER_COMPRESSION_MIME", Def: "text/html text/plain text/css", Value: "TYPES",
			Set: option.Into(&a.compressTypes, option.ParseTypes), Help: "types that are compressed, separated by blanks"},
	}
}

// complete gives the request path what follows from several options.
func (a *answerOptions) complete(o *options) {
	if a.hardStop > 0 {
		o.server.Proxy.Timeouts.Drain = min(a.hardStop, o.server.Proxy.Timeouts.Drain)
	}
	if a.compress {
		o.server.Proxy.Compression = proxy.NewCompression(a.compressTypes)
	}
	if a.metricsType == "haproxy" {
		o.server.Proxy.MonitorPath = monitorPath
	}
}
