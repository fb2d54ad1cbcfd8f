package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"turnout/internal/option"
	"turnout/internal/tracing"
	"turnout/proxy"
)

// tracingOptions are how requests are traced. The variables of OpenTelemetry that are not here are read by its SDK.
type tracingOptions struct {
	exporter                string // otlp, none, or "" = otlp if there is an endpoint
	endpoint, traceEndpoint string
	protocol, traceProtocol string
	sampler                 string
	ratio                   float64
	formats                 proxy.TraceFormats
	plain, secure           string
	rate                    int
	disabled                bool
}

func tracingSettings(o *options) []option.Option {
	t := &o.tracing
	return []option.Option{
		{Flag: "trace-exporter", Env: "OTEL_TRACES_EXPORTER", Value: "otlp|none", Set: option.Words(&t.exporter, "otlp", "none"),
			Help: "where spans of requests go; the default is otlp where an endpoint is given, and none otherwise"},
		{Flag: "otlp-endpoint", Env: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "URL", Set: option.Into(&t.endpoint, parseCollector),
			Help: "the collector that takes OTLP, without the path /v1/traces"},
		{Flag: "trace-endpoint", Env: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", Value: "URL", Set: option.Into(&t.traceEndpoint, parseCollector),
			Help: "the same for traces alone, with the path"},
		{Flag: "otlp-protocol", Env: "OTEL_EXPORTER_OTLP_PROTOCOL", Def: "http/protobuf", Value: "NAME", Set: option.Words(&t.protocol, "grpc", "http/protobuf", "http/json"),
			Help: "how the collector is spoken to: grpc, http/protobuf or http/json"},
		{Flag: "trace-protocol", Env: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", Value: "NAME", Set: option.Words(&t.traceProtocol, "grpc", "http/protobuf", "http/json"),
			Help: "the same for traces alone"},
		{Flag: "trace-sampler", Env: "OTEL_TRACES_SAMPLER", Def: "parentbased_always_on", Value: "NAME",
			Set:  option.Words(&t.sampler, "always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"),
			Help: "which requests are recorded: always_on, always_off or traceidratio, each also with parentbased_ before it: then the client decides if it has a trace"},
		{Flag: "trace-sampler-arg", Env: "OTEL_TRACES_SAMPLER_ARG", Def: "1", Value: "RATIO", Set: option.Into(&t.ratio, parseRatio),
			Help: "the ratio of traceidratio, 0 to 1"},
		{Flag: "trace-propagators", Env: "OTEL_PROPAGATORS", Def: "tracecontext,baggage", Value: "LIST", Set: option.Into(&t.formats, parsePropagators),
			Help: "how requests say which trace they belong to: tracecontext, b3, b3multi, or none; baggage always passes"},
		{Flag: "http-trace-context", Def: "trust", Value: "WORD", Set: option.Words(&t.plain, traceContexts...),
			Help: "what the trace of clients of the plain port counts for: trust, link (a new trace, linked to it) or ignore"},
		{Flag: "https-trace-context", Def: "trust", Value: "WORD", Set: option.Words(&t.secure, traceContexts...),
			Help: "the same for the TLS port"},
		{Flag: "trace-client-rate", Def: "100", Value: "N", Set: option.Into(&t.rate, parseRate),
			Help: "requests a second that are recorded because their clients say so and the ratio does not; 0 means any number"},
		{Flag: "otel-sdk-disabled", Env: "OTEL_SDK_DISABLED", Def: "false", IsBool: true, Set: option.Into(&t.disabled, option.ParseBool),
			Help: "requests are not traced, whatever the other options say"},
	}
}

// traceContexts are the words of proxy.TraceContexts, in their order.
var traceContexts = []string{"trust", "link", "ignore"}

func parseContexts(s string) proxy.TraceContexts {
	for i, word := range traceContexts {
		if s == word {
			return proxy.TraceContexts(i)
		}
	}
	return proxy.TraceTrust
}

// parseCollector reads the URL of a collector.
func parseCollector(s string) (string, error) {
	u, err := url.Parse(s)
	if s != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return "", errors.New("allowed: a URL such as http://collector:4318 or https://collector:4317")
	}
	return s, nil
}

// parseRatio reads a number from 0 to 1.
func parseRatio(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, errors.New("allowed: a number from 0 to 1")
	}
	return f, nil
}

// parseRate reads a number of requests a second.
func parseRate(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || n > 1e6 {
		return 0, errors.New("allowed: a whole number up to 1000000; 0 means any number")
	}
	return int(n), nil
}

// parsePropagators reads a list of names.
func parsePropagators(s string) (formats proxy.TraceFormats, err error) {
	for _, name := range option.ParseList(s) {
		switch name {
		case "tracecontext":
			formats |= proxy.TraceW3C
		case "b3":
			formats |= proxy.TraceB3
		case "b3multi":
			formats |= proxy.TraceB3Multi
		case "baggage", "none":
		default:
			return 0, errors.New("allowed: tracecontext, b3, b3multi, baggage, none, separated by commas")
		}
	}
	return formats, nil
}

// on says that requests are traced.
func (t *tracingOptions) on() bool {
	return !t.disabled && (t.exporter == "otlp" || t.exporter == "" && t.endpoint+t.traceEndpoint != "")
}

// exporterConfig is where spans go.
func (t *tracingOptions) exporterConfig() tracing.Config {
	protocols := map[string]tracing.Protocol{"grpc": tracing.GRPC, "http/protobuf": tracing.HTTPProtobuf, "http/json": tracing.HTTPJSON}
	cfg := tracing.Config{Protocol: protocols[t.protocol], Endpoint: t.traceEndpoint, Version: version()}
	if t.traceProtocol != "" {
		cfg.Protocol = protocols[t.traceProtocol]
	}
	if cfg.Endpoint == "" && t.endpoint != "" {
		cfg.Endpoint = t.endpoint
		if cfg.Protocol != tracing.GRPC {
			cfg.Endpoint = strings.TrimSuffix(t.endpoint, "/") + "/v1/traces"
		}
	}
	cfg.Host, _ = os.Hostname()
	return cfg
}

// config is what is traced.
func (t *tracingOptions) config(open func() proxy.SpanQueue) proxy.TracingConfig {
	sampler, parentBased := strings.CutPrefix(t.sampler, "parentbased_")
	ratio := map[string]float64{"always_on": 1, "always_off": 0, "traceidratio": t.ratio}[sampler]
	return proxy.TracingConfig{
		Formats: t.formats, Plain: parseContexts(t.plain), Secure: parseContexts(t.secure), Ratio: ratio, ParentBased: parentBased, ClientRate: t.rate, Open: open,
	}
}

// doubts says what of the options has no effect.
func (t *tracingOptions) doubts() []string {
	if !t.on() || strings.HasSuffix(t.sampler, "traceidratio") || t.ratio == 1 {
		return nil
	}
	return []string{"--trace-sampler-arg (OTEL_TRACES_SAMPLER_ARG) has no effect with --trace-sampler " + t.sampler}
}

// start starts to export, if requests are traced; both results are nil otherwise.
func (t *tracingOptions) start(log *zap.Logger) (*tracing.Exporter, *proxy.Tracing, error) {
	if !t.on() {
		return nil, nil, nil
	}
	cfg := t.exporterConfig()
	cfg.Notify = func(err error) {
		if err != nil {
			log.Warn("traces: "+err.Error(), zap.String("collector", cfg.Endpoint))
			return
		}
		log.Info("traces are exported again", zap.String("collector", cfg.Endpoint))
	}
	e, err := tracing.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	requests, err := proxy.NewTracing(t.config(e.Open))
	if err != nil {
		stopTracing(e, log)
		return nil, nil, err
	}
	return e, requests, nil
}

// stopTracing exports what is left, for a moment; e may be nil.
func stopTracing(e *tracing.Exporter, log *zap.Logger) {
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		log.Warn("traces: " + err.Error())
	}
}
