package tracing

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"turnout/internal/option"
	"turnout/proxy"
)

// Options are how requests are traced, in the words of the variables of OpenTelemetry. The variables that are not here are read by its SDK.
type Options struct {
	Exporter                string // otlp, none, or "" = otlp if there is an endpoint
	Endpoint, TraceEndpoint string // URLs of the collector: without the path of traces, and with it; "" = not given
	Protocol, TraceProtocol string // grpc, http/protobuf or http/json; the second is for traces alone, "" = the first
	Sampler                 string // always_on, always_off or traceidratio, each also with parentbased_ before it
	Ratio                   float64
	Formats                 proxy.TraceFormats
	Plain, Secure           proxy.TraceContexts
	Rate                    int // see proxy.TracingConfig.ClientRate
	Disabled                bool
}

// On says that requests are traced.
func (o *Options) On() bool {
	return !o.Disabled && (o.Exporter == "otlp" || o.Exporter == "" && o.Endpoint+o.TraceEndpoint != "")
}

// ExporterConfig is where spans go.
func (o *Options) ExporterConfig() Config {
	protocols := map[string]Protocol{"grpc": GRPC, "http/protobuf": HTTPProtobuf, "http/json": HTTPJSON}
	cfg := Config{Protocol: protocols[o.Protocol], Endpoint: o.TraceEndpoint}
	if o.TraceProtocol != "" {
		cfg.Protocol = protocols[o.TraceProtocol]
	}
	if cfg.Endpoint == "" && o.Endpoint != "" {
		cfg.Endpoint = o.Endpoint
		if cfg.Protocol != GRPC {
			cfg.Endpoint = strings.TrimSuffix(o.Endpoint, "/") + "/v1/traces"
		}
	}
	cfg.Host, _ = os.Hostname()
	return cfg
}

// RequestsConfig is what is traced, and where records of it go.
func (o *Options) RequestsConfig(open func() proxy.SpanQueue) proxy.TracingConfig {
	sampler, parentBased := strings.CutPrefix(o.Sampler, "parentbased_")
	ratio := map[string]float64{"always_on": 1, "always_off": 0, "traceidratio": o.Ratio}[sampler]
	return proxy.TracingConfig{
		Formats: o.Formats, Plain: o.Plain, Secure: o.Secure, Ratio: ratio, ParentBased: parentBased, ClientRate: o.Rate, Open: open,
	}
}

// Doubts says what of the options has no effect.
func (o *Options) Doubts() []string {
	if !o.On() || strings.HasSuffix(o.Sampler, "traceidratio") || o.Ratio == 1 {
		return nil
	}
	return []string{"--trace-sampler-arg (OTEL_TRACES_SAMPLER_ARG) has no effect with --trace-sampler " + o.Sampler}
}

// closePatience is how long an exporter that is not used may take to end.
const closePatience = 3 * time.Second

// Start starts to export, if requests are traced; both results are nil otherwise. version is that of the build, notify is Config.Notify
// with the address of the collector.
func (o *Options) Start(version string, notify func(collector string, err error)) (*Exporter, *proxy.Tracing, error) {
	if !o.On() {
		return nil, nil, nil
	}
	cfg := o.ExporterConfig()
	cfg.Version, cfg.Notify = version, func(err error) { notify(cfg.Endpoint, err) }
	e, err := New(cfg)
	if err != nil {
		return nil, nil, err
	}
	requests, err := proxy.NewTracing(o.RequestsConfig(e.Open))
	if err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closePatience)
		defer cancel()
		return nil, nil, errors.Join(err, e.Close(ctx))
	}
	return e, requests, nil
}

// ParseContexts reads what the trace of clients counts for: trust, link or ignore.
func ParseContexts(s string) (proxy.TraceContexts, error) {
	switch s {
	case "trust":
		return proxy.TraceTrust, nil
	case "link":
		return proxy.TraceLink, nil
	case "ignore":
		return proxy.TraceIgnore, nil
	}
	return 0, errors.New("allowed: trust, link, ignore")
}

// ParseCollector reads the URL of a collector; "" = none.
func ParseCollector(s string) (string, error) {
	u, err := url.Parse(s)
	if s != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return "", errors.New("allowed: a URL such as http://collector:4318 or https://collector:4317")
	}
	return s, nil
}

// ParseRatio reads a number from 0 to 1.
func ParseRatio(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, errors.New("allowed: a number from 0 to 1")
	}
	return f, nil
}

// ParseRate reads a number of requests a second.
func ParseRate(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || n > 1e6 {
		return 0, errors.New("allowed: a whole number up to 1000000; 0 means any number")
	}
	return int(n), nil
}

// ParsePropagators reads a list of names of formats, separated by commas.
func ParsePropagators(s string) (formats proxy.TraceFormats, err error) {
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
