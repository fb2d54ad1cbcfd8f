package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"turnout/proxy"
	"turnout/proxy/h1"
)

// answerOptions are the options about the router's own answers and about bodies that are not in the configuration of the request path
// as they are.
type answerOptions struct {
	unavailableFile, notFoundFile string
	compress                      bool
	compressTypes                 string
	metricsType                   string        // haproxy: the monitor path is served
	hardStop                      time.Duration // 0: only --max-shutdown-timeout counts
}

// monitorPath is what load balancers of the router we replace ask on the plain port.
const monitorPath = "/_______internal_router_healthz"

func answerSettings(o *options) []setting {
	a := &o.answers
	return []setting{
		{flag: "metrics-type", env: "ROUTER_METRICS_TYPE", value: "TYPE", envStops: true, set: words(&a.metricsType, "haproxy"),
			help: "haproxy: answer probes of " + monitorPath + " on the plain port; metrics are there without it"},
		{flag: "http-ignore-probes", env: "ROUTER_HTTP_IGNORE_PROBES", def: "false", isBool: true, set: into(&o.server.IgnoreProbes, parseBool),
			help: "close connections that never sent a byte without an answer and a line in the log"},
		{flag: "dont-log-null", env: "ROUTER_DONT_LOG_NULL", def: "false", isBool: true, set: into(&o.server.DontLogNull, parseBool),
			help: "leave connections that never sent a byte out of the access log"},
		{flag: "abort-on-close", env: "ROUTER_ABORT_ON_CLOSE", def: "false", isBool: true, set: into(&o.server.Proxy.AbortOnClose, parseBool),
			help: "drop requests that wait for a pod, in the queue or for a connection, when their client has ended its sending"},
		{flag: "idle-close-on-response", env: "ROUTER_IDLE_CLOSE_ON_RESPONSE", def: "false", isBool: true, set: into(&o.server.KeepIdle, parseBool),
			help: "when the router stops, close idle connections after one more answer instead of at once"},
		{flag: "hard-stop-after", env: "ROUTER_HARD_STOP_AFTER", value: "TIME", set: into(&a.hardStop, parseTimespec),
			help: "cut what is still running so long after the router began to close connections; the shorter of this and --max-shutdown-timeout"},
		{flag: "errorfile-503", env: "ROUTER_ERRORFILE_503", value: "FILE", set: into(&a.unavailableFile, parseText),
			help: "HTTP response to send instead of the 503 page"},
		{flag: "errorfile-404", env: "ROUTER_ERRORFILE_404", value: "FILE", set: into(&a.notFoundFile, parseText),
			help: "HTTP response to send for requests without a route; without it they get the 503 page"},
		{flag: "enable-compression", env: "ROUTER_ENABLE_COMPRESSION", def: "false", isBool: true, set: into(&a.compress, parseBool),
			help: "compress responses with gzip"},
		{flag: "compression-mime", env: "ROUTER_COMPRESSION_MIME", def: "text/html text/plain text/css", value: "TYPES",
			set: into(&a.compressTypes, parseTypes), help: "types that are compressed, separated by blanks"},
	}
}

// parseTypes reads media types separated by blanks and returns them without their
// parameters. One with blanks in it is in double quotes, as the operator writes it.
func parseTypes(s string) (string, error) {
	errTypes := errors.New("allowed: media types separated by blanks, such as text/html text/css")
	var types []string
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		end := strings.IndexAny(s+" ", " \t")
		word := s[:end]
		if s[0] == '"' {
			quoted, err := strconv.QuotedPrefix(s)
			if err != nil {
				return "", errTypes
			}
			end = len(quoted)
			if word, err = strconv.Unquote(quoted); err != nil {
				return "", errTypes
			}
		}
		s = s[end:]
		word, _, _ = strings.Cut(word, ";")
		word = strings.TrimSpace(word)
		if kind, sub, ok := strings.Cut(word, "/"); !ok || kind == "" || sub == "" || strings.ContainsAny(word, ", \t\"") {
			return "", errTypes
		}
		types = append(types, word)
	}
	return strings.Join(types, " "), nil
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

// load reads the error files. One that cannot be used is logged, and the router's own
// page stands in: a router without a fancy page serves better than none.
func (a *answerOptions) load(c *proxy.Config, log *zap.Logger) {
	var err error
	if c.Unavailable, err = loadPage(a.unavailableFile); err != nil {
		log.Error("error page", zap.Int("status", 503), zap.String("file", a.unavailableFile), zap.Error(err))
	}
	if a.notFoundFile != "" {
		if c.NotFound, err = loadPage(a.notFoundFile); err != nil {
			log.Error("error page", zap.Int("status", 404), zap.String("file", a.notFoundFile), zap.Error(err))
			c.NotFound = proxy.DefaultNotFound()
		}
	}
}

// loadPage reads an error file, nil without a name.
func loadPage(name string) (*proxy.ErrorPage, error) {
	if name == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read error file: %w", err)
	}
	return h1.ParseErrorFile(raw)
}
