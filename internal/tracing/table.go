package tracing

import "turnout/internal/option"

// Table are the options, bound to o.
func (o *Options) Table() []option.Option {
	return []option.Option{
		{Flag: "trace-exporter", Env: "OTEL_TRACES_EXPORTER", Value: "otlp|none", Set: option.Words(&o.Exporter, "otlp", "none"),
			Help: "where spans of requests go; the default is otlp where an endpoint is given, and none otherwise"},
		{Flag: "otlp-endpoint", Env: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "URL", Set: option.Into(&o.Endpoint, ParseCollector),
			Help: "the collector that takes OTLP, without the path /v1/traces"},
		{Flag: "trace-endpoint", Env: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", Value: "URL", Set: option.Into(&o.TraceEndpoint, ParseCollector),
			Help: "the same for traces alone, with the path"},
		{Flag: "otlp-protocol", Env: "OTEL_EXPORTER_OTLP_PROTOCOL", Def: "http/protobuf", Value: "NAME", Set: option.Words(&o.Protocol, "grpc", "http/protobuf", "http/json"),
			Help: "how the collector is spoken to: grpc, http/protobuf or http/json"},
		{Flag: "trace-protocol", Env: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", Value: "NAME", Set: option.Words(&o.TraceProtocol, "grpc", "http/protobuf", "http/json"),
			Help: "the same for traces alone"},
		{Flag: "trace-sampler", Env: "OTEL_TRACES_SAMPLER", Def: "parentbased_always_on", Value: "NAME",
			Set:  option.Words(&o.Sampler, "always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"),
			Help: "which requests are recorded: always_on, always_off or traceidratio, each also with parentbased_ before it: then the client decides if it has a trace"},
		{Flag: "trace-sampler-arg", Env: "OTEL_TRACES_SAMPLER_ARG", Def: "1", Value: "RATIO", Set: option.Into(&o.Ratio, ParseRatio),
			Help: "the ratio of traceidratio, 0 to 1"},
		{Flag: "trace-propagators", Env: "OTEL_PROPAGATORS", Def: "tracecontext,baggage", Value: "LIST", Set: option.Into(&o.Formats, ParsePropagators),
			Help: "how requests say which trace they belong to: tracecontext, b3, b3multi, or none; baggage always passes"},
		{Flag: "http-trace-context", Def: "trust", Value: "WORD", Set: option.Into(&o.Plain, ParseContexts),
			Help: "what the trace of clients of the plain port counts for: trust, link (a new trace, linked to it) or ignore"},
		{Flag: "https-trace-context", Def: "trust", Value: "WORD", Set: option.Into(&o.Secure, ParseContexts),
			Help: "the same for the TLS port"},
		{Flag: "trace-client-rate", Def: "100", Value: "N", Set: option.Into(&o.Rate, ParseRate),
			Help: "requests a second that are recorded because their clients say so and the ratio does not; 0 means any number"},
		{Flag: "otel-sdk-disabled", Env: "OTEL_SDK_DISABLED", Def: "false", IsBool: true, Set: option.Into(&o.Disabled, option.ParseBool),
			Help: "requests are not traced, whatever the other options say"},
	}
}
