package ingresscontroller

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/source"
)

// logging is where a line about each request goes, and what it says.
func (t *translation) logging() {
	if t.o.Spec.Logging == nil || t.o.Spec.Logging.Access == nil {
		return
	}
	access, field := t.o.Spec.Logging.Access, "spec.logging.access."
	switch to := access.Destination; to.Type {
	case operatorv1.SyslogLoggingDestinationType:
		t.syslog(field+"destination.syslog.", to.Syslog)
	case operatorv1.ContainerLoggingDestinationType:
		t.foreign(field+"destination.type", "Container: there is no container logs beside this router; --access-log stdout, or ROUTER_SYSLOG_ADDRESS with a socket that somebody reads, says where lines go")
	default:
		t.invalid(field+"destination.type", to.Type, "allowed: Syslog")
	}
	t.set("syslog-level", "info", "spec.logging.access")
	if access.HttpLogFormat != "" {
		t.set("syslog-format", strconv.Quote(access.HttpLogFormat), field+"httpLogFormat")
	}
	t.captures(field+"httpCaptureHeaders.request", "capture-http-request-headers", access.HTTPCaptureHeaders.Request)
	t.captures(field+"httpCaptureHeaders.response", "capture-http-response-headers", access.HTTPCaptureHeaders.Response)
	if len(access.HTTPCaptureCookies) > 0 {
		t.cookie(field+"httpCaptureCookies", &access.HTTPCaptureCookies[0])
	}
	t.word(field+"logEmptyRequests", "dont-log-null", string(access.LogEmptyRequests), map[string]string{
		string(operatorv1.LoggingPolicyLog): "false", string(operatorv1.LoggingPolicyIgnore): "true",
	})
}

func (t *translation) syslog(field string, to *operatorv1.SyslogLoggingDestinationParameters) {
	if to == nil || to.Address == "" || to.Port < 1 || to.Port > 65535 {
		t.invalid(field+"address", to, "allowed: an address, and a port from 1 to 65535")
		return
	}
	t.set("syslog-address", net.JoinHostPort(to.Address, strconv.Itoa(int(to.Port))), field+"address")
	if to.Facility != "" {
		t.set("log-facility", to.Facility, field+"facility")
	}
	if to.MaxLength != 0 {
		t.set("log-max-length", strconv.Itoa(int(to.MaxLength)), field+"maxLength")
	}
}

func (t *translation) captures(field, flag string, headers []operatorv1.IngressControllerCaptureHTTPHeader) {
	items := make([]string, len(headers))
	for i, h := range headers {
		items[i] = h.Name + ":" + strconv.Itoa(h.MaxLength)
	}
	if len(items) > 0 {
		t.set(flag, strings.Join(items, ","), field)
	}
}

// defaultCookieLength is how much the operator has captured of a cookie without a maxLength.
const defaultCookieLength = 256

func (t *translation) cookie(field string, c *operatorv1.IngressControllerCaptureHTTPCookie) {
	length := c.MaxLength
	if length == 0 {
		length = defaultCookieLength
	}
	switch c.MatchType {
	case operatorv1.CookieMatchTypeExact:
		t.set("capture-http-cookie", c.Name+"=:"+strconv.Itoa(length), field)
	case operatorv1.CookieMatchTypePrefix:
		t.set("capture-http-cookie", c.NamePrefix+":"+strconv.Itoa(length), field)
	default:
		t.invalid(field+".matchType", c.MatchType, "allowed: Exact or Prefix")
	}
}

// uniqueFormat is the format of unique ids where none is given.
const uniqueFormat = "%{+X}o %ci:%cp_%fi:%fp_%Ts_%rt:%pid"

// headers is what is done to fields of messages.
func (t *translation) headers() {
	h := t.o.Spec.HTTPHeaders
	if h == nil {
		return
	}
	const field = "spec.httpHeaders."
	t.word(field+"forwardedHeaderPolicy", "set-forwarded-headers", string(h.ForwardedHeaderPolicy), map[string]string{
		string(operatorv1.AppendHTTPHeaderPolicy): "append", string(operatorv1.ReplaceHTTPHeaderPolicy): "replace",
		string(operatorv1.IfNoneHTTPHeaderPolicy): "if-none", string(operatorv1.NeverHTTPHeaderPolicy): "never",
	})
	if h.UniqueId.Name != "" {
		t.set("unique-id-header-name", h.UniqueId.Name, field+"uniqueId.name")
		t.set("unique-id-format", strconv.Quote(uniqueFormat), field+"uniqueId.name")
		if h.UniqueId.Format != "" {
			t.set("unique-id-format", strconv.Quote(h.UniqueId.Format), field+"uniqueId.format")
		}
	}
	names := make([]string, len(h.HeaderNameCaseAdjustments))
	for i, name := range h.HeaderNameCaseAdjustments {
		names[i] = string(name)
	}
	if len(names) > 0 {
		t.set("http-header-name-case-adjustments", strings.Join(names, ","), field+"headerNameCaseAdjustments")
	}
	t.actions(field+"actions.request", "set-delete-http-request-header", h.Actions.Request)
	t.actions(field+"actions.response", "set-delete-http-response-header", h.Actions.Response)
}

func (t *translation) actions(field, flag string, actions []operatorv1.IngressControllerHTTPHeader) {
	var items []string
	for i := range actions {
		a := &actions[i]
		switch name := url.QueryEscape(a.Name); {
		case a.Action.Type == operatorv1.Set && a.Action.Set != nil:
			items = append(items, name+":"+url.QueryEscape(a.Action.Set.Value)+":Set")
		case a.Action.Type == operatorv1.Delete:
			items = append(items, name+":Delete")
		default:
			t.invalid(fmt.Sprintf("%s[%d].action.type", field, i), a.Action.Type, "allowed: Set with a value, or Delete")
		}
	}
	if len(items) > 0 {
		t.set(flag, strings.Join(items, ","), field)
	}
}

// answers is about the router's own answers, about bodies, and about when connections end.
func (t *translation) answers() {
	s := &t.o.Spec
	t.errorPages(s.HttpErrorCodePages.Name)
	t.word("spec.httpEmptyRequestsPolicy", "http-ignore-probes", string(s.HTTPEmptyRequestsPolicy), map[string]string{
		string(operatorv1.HTTPEmptyRequestsPolicyRespond): "false", string(operatorv1.HTTPEmptyRequestsPolicyIgnore): "true",
	})
	t.word("spec.closedClientConnectionPolicy", "abort-on-close", t.o.newer.Spec.ClosedClientConnectionPolicy, map[string]string{"Continue": "false", "Abort": "true"})
	t.word("spec.idleConnectionTerminationPolicy", "idle-close-on-response", string(s.IdleConnectionTerminationPolicy), map[string]string{
		string(operatorv1.IngressControllerConnectionTerminationPolicyImmediate): "false", string(operatorv1.IngressControllerConnectionTerminationPolicyDeferred): "true",
	})
	types := make([]string, len(s.HTTPCompression.MimeTypes))
	for i, mime := range s.HTTPCompression.MimeTypes {
		if types[i] = string(mime); strings.ContainsAny(types[i], " \t\"") {
			types[i] = strconv.Quote(types[i])
		}
	}
	if len(types) > 0 {
		t.set("enable-compression", "true", "spec.httpCompression.mimeTypes")
		t.set("compression-mime", strings.Join(types, " "), "spec.httpCompression.mimeTypes")
	}
	http2, field := t.annotation("ingress.operator.openshift.io/default-enable-http2")
	on, err := strconv.ParseBool(http2)
	if http2 != "" && err != nil {
		t.invalid(field, http2, "allowed: true or false")
	}
	t.set("disable-http2", strconv.FormatBool(!on), field)
	if stop, field := t.annotation("ingress.operator.openshift.io/hard-stop-after"); stop != "" {
		t.set("hard-stop-after", stop, field)
	}
}

// errorPages are the pages of a ConfigMap.
func (t *translation) errorPages(name string) {
	if name == "" {
		return
	}
	ref := Ref{source.ConfigMap, source.Key{Namespace: configNamespace, Name: name}}
	const field = "spec.httpErrorCodePages"
	var of corev1.ConfigMap
	if !t.referred(ref, field, &of) {
		return
	}
	for _, p := range []struct{ key, flag string }{{"error-page-503.http", "errorfile-503"}, {"error-page-404.http", "errorfile-404"}} {
		if page, ok := of.Data[p.key]; ok {
			t.content(p.flag, "ConfigMap "+ref.Key.String()+", "+p.key, []byte(page), field)
		} else {
			t.invalid(field, ref.Key, "the ConfigMap has no key "+p.key)
		}
	}
}

// Bounds of tuningOptions, as the API has them.
const (
	leastBuffer, leastRewrite     = 16384, 4096
	defaultBuffer, defaultRewrite = 32768, 8192
	leastConnections              = 2000
	mostConnections               = 2_000_000
)

// tuning is the tuning options.
func (t *translation) tuning() {
	o, field := &t.o.Spec.TuningOptions, "spec.tuningOptions."
	t.buffers(field, int(o.HeaderBufferBytes), int(o.HeaderBufferMaxRewriteBytes))
	for _, d := range []struct {
		field, flag string
		value       *metav1.Duration
		least       time.Duration
	}{
		{"clientTimeout", "default-client-timeout", o.ClientTimeout, time.Microsecond},
		{"clientFinTimeout", "client-fin-timeout", o.ClientFinTimeout, time.Microsecond},
		{"serverTimeout", "default-server-timeout", o.ServerTimeout, time.Microsecond},
		{"serverFinTimeout", "default-server-fin-timeout", o.ServerFinTimeout, time.Microsecond},
		{"connectTimeout", "default-connect-timeout", o.ConnectTimeout, time.Microsecond},
		{"tunnelTimeout", "default-tunnel-timeout", o.TunnelTimeout, time.Microsecond},
		{"tlsInspectDelay", "inspect-delay", o.TLSInspectDelay, time.Microsecond},
		{"httpKeepAliveTimeout", "slowloris-http-keepalive", t.o.newer.Spec.TuningOptions.HTTPKeepAliveTimeout, time.Microsecond},
		{"healthCheckInterval", "backend-check-interval", o.HealthCheckInterval, time.Second},
	} {
		t.duration(field+d.field, d.flag, d.value, d.least)
	}
	switch n := o.MaxConnections; {
	case n == 0:
	case n == -1:
		t.set("max-connections", "auto", field+"maxConnections")
	case n < leastConnections || n > mostConnections:
		t.invalid(field+"maxConnections", n, fmt.Sprintf("allowed: -1, or %d to %d", leastConnections, mostConnections))
	default:
		t.set("max-connections", strconv.Itoa(int(n)), field+"maxConnections")
	}
	if o.ThreadCount != 0 {
		t.foreign(field+"threadCount", "the number of event loops is chosen at the start: --threads, or one for each processor")
	}
	if o.ReloadInterval.Duration != 0 {
		t.foreign(field+"reloadInterval", "nothing is reloaded")
	}
	n := &t.o.newer.Spec
	if n.ConfigurationManagement != nil || n.TuningOptions.ConfigurationManagement != nil {
		t.foreign("spec.configurationManagement", "nothing is reloaded, whatever it says")
	}
	if n.HAProxyVersion != "" {
		t.foreign("spec.haproxyVersion", "this router is not HAProxy")
	}
}

// buffers is how long heads may be, of which a part is for what is added to them.
func (t *translation) buffers(field string, buffer, rewrite int) {
	all, part := buffer, rewrite
	if all == 0 {
		all = defaultBuffer
	}
	if part == 0 {
		part = defaultRewrite
	}
	switch {
	case all < leastBuffer:
		t.invalid(field+"headerBufferBytes", buffer, "allowed: 16384 or more")
	case part < leastRewrite:
		t.invalid(field+"headerBufferMaxRewriteBytes", rewrite, "allowed: 4096 or more")
	case all <= part:
		t.invalid(field+"headerBufferBytes", all, fmt.Sprintf("it has to be more than headerBufferMaxRewriteBytes, %d; neither has an effect", part))
	default:
		if buffer != 0 {
			t.set("buf-size", strconv.Itoa(buffer), field+"headerBufferBytes")
		}
		if rewrite != 0 {
			t.set("max-rewrite-size", strconv.Itoa(rewrite), field+"headerBufferMaxRewriteBytes")
		}
	}
}

// overrides are the unsupported ones, whose values are texts or truth values.
func (t *translation) overrides() {
	raw := t.o.Spec.UnsupportedConfigOverrides.Raw
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	const field = "spec.unsupportedConfigOverrides"
	var of map[string]any
	if err := json.Unmarshal(raw, &of); err != nil {
		t.invalid(field, string(raw), "it is no object")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		value := fmt.Sprint(of[name])
		switch at := field + "." + name; name {
		case "loadBalancingAlgorithm":
			t.set("load-balance-algorithm", value, at)
		case "mutualTLSHeaderFilter":
			t.set("mutual-tls-header-filter", value, at)
		case "dynamicConfigManager", "maxDynamicServers", "contStats":
			t.foreign(at, "it is about how HAProxy is run")
		default:
			t.foreign(at, "this version does not know it")
		}
	}
}
