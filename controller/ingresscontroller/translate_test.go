package ingresscontroller

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"turnout/controller/source"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}

// given are the settings besides those that are always there, as "flag=value" or "flag=value <- content".
func given(out Outcome) string {
	var all []string
	for _, s := range out.Settings {
		switch s.Flag {
		case "name", "ssl-min-version", "ciphers", "ciphersuites", "curves", "disable-http2":
			continue
		}
		text := s.Flag + "=" + s.Value
		if s.Content != nil {
			text += " <- " + string(s.Content)
		}
		all = append(all, text)
	}
	return strings.Join(all, " | ")
}

func found(out Outcome) string {
	var all []string
	for _, f := range out.Findings {
		all = append(all, f.Field)
	}
	return strings.Join(all, " ")
}

// TestFields: each field by itself, with its bounds: what it means as options, and which fields have no effect.
func TestFields(t *testing.T) {
	for _, c := range []struct{ spec, want, findings string }{
		{"{}", "", ""},
		{"namespaceSelector: {matchLabels: {env: prod}}", "namespace-labels=env=prod", ""},
		{"namespaceSelector: {}", "", ""},
		{"routeSelector: {matchExpressions: [{key: type, operator: In, values: [a, b]}]}", "labels=type in (a,b)", ""},
		{"routeSelector: {matchExpressions: [{key: type, operator: Near, values: [a]}]}", "", "spec.routeSelector"},
		{"routeAdmission: {namespaceOwnership: Strict}", "disable-namespace-ownership-check=false", ""},
		{"routeAdmission: {namespaceOwnership: InterNamespaceAllowed}", "disable-namespace-ownership-check=true", ""},
		{"routeAdmission: {wildcardPolicy: WildcardsAllowed}", "allow-wildcard-routes=true", ""},
		{"routeAdmission: {wildcardPolicy: WildcardsDisallowed}", "allow-wildcard-routes=false", ""},
		{"routeAdmission: {wildcardPolicy: Sometimes, namespaceOwnership: Strict}", "disable-namespace-ownership-check=false", "spec.routeAdmission.wildcardPolicy"},

		{"endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {}}", "service-http-port=80 | service-https-port=443 | stats-port=1936", ""},
		{"endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 9080, httpsPort: 9443, statsPort: 9936, protocol: PROXY}}", "use-proxy-protocol=true | service-http-port=9080 | service-https-port=9443 | stats-port=9936", ""},
		{"endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 443}}", "", "spec.endpointPublishingStrategy.hostNetwork.httpsPort"},
		{"endpointPublishingStrategy: {type: HostNetwork, hostNetwork: {httpPort: 70000}}", "", "spec.endpointPublishingStrategy.hostNetwork.httpPort"},
		{"endpointPublishingStrategy: {type: NodePortService, nodePort: {protocol: PROXY}}", "use-proxy-protocol=true", ""},
		{"endpointPublishingStrategy: {type: Private, private: {protocol: TCP}}", "use-proxy-protocol=false", ""},
		{"endpointPublishingStrategy: {type: Private, private: {protocol: UDP}}", "", "spec.endpointPublishingStrategy.private.protocol"},
		{"endpointPublishingStrategy: {type: LoadBalancerService, loadBalancer: {scope: External}}", "", ""},
		{"endpointPublishingStrategy: {type: LoadBalancerService, loadBalancer: {scope: External, providerParameters: {type: AWS, aws: {type: Classic}}}}", "use-proxy-protocol=true", ""},
		{"endpointPublishingStrategy: {type: LoadBalancerService, loadBalancer: {scope: External, providerParameters: {type: AWS, aws: {type: NLB}}}}", "default-tunnel-timeout=349s", ""},
		{"endpointPublishingStrategy: {type: LoadBalancerService, loadBalancer: {scope: External, providerParameters: {type: IBM, ibm: {protocol: PROXY}}}}", "use-proxy-protocol=true", ""},

		{"clientTLS: {clientCertificatePolicy: Required, clientCA: {name: ca}, allowedSubjectPatterns: [a, b]}", "mutual-tls-auth=required | mutual-tls-auth-ca=ConfigMap openshift-config/ca, ca-bundle.pem <- PEM | mutual-tls-auth-filter=(?:a|b)", ""},
		{"clientTLS: {clientCertificatePolicy: Optional, clientCA: {name: ''}, allowedSubjectPatterns: [a]}", "mutual-tls-auth=optional", ""},
		{"clientTLS: {clientCertificatePolicy: '', clientCA: {name: ca}}", "mutual-tls-auth-ca=ConfigMap openshift-config/ca, ca-bundle.pem <- PEM", ""},
		{"clientTLS: {clientCertificatePolicy: Required, clientCA: {name: gone}}", "mutual-tls-auth=required | mutual-tls-auth-ca=ConfigMap openshift-config/gone, ca-bundle.pem <- ", "spec.clientTLS.clientCA"},
		{"clientTLS: {clientCertificatePolicy: Required, clientCA: {name: pages}}", "mutual-tls-auth=required | mutual-tls-auth-ca=ConfigMap openshift-config/pages, ca-bundle.pem <- ", "spec.clientTLS.clientCA"},
		{"clientTLS: {clientCertificatePolicy: Perhaps}", "", "spec.clientTLS.clientCertificatePolicy"},
		{"defaultCertificate: {name: cert}", "default-certificate=Secret openshift-ingress/cert <- CERT\nKEY", ""},
		{"defaultCertificate: {name: gone}", "", "spec.defaultCertificate"},
		{"defaultCertificate: {name: locked}", "", "spec.defaultCertificate"},

		{"logging: {access: {destination: {type: Syslog, syslog: {address: 10.0.0.1, port: 514, facility: local2, maxLength: 4096}}}}", "syslog-address=10.0.0.1:514 | log-facility=local2 | log-max-length=4096 | syslog-level=info", ""},
		{"logging: {access: {destination: {type: Syslog, syslog: {address: '2001:db8::1', port: 514}}}}", "syslog-address=[2001:db8::1]:514 | syslog-level=info", ""},
		{"logging: {access: {destination: {type: Syslog}}}", "syslog-level=info", "spec.logging.access.destination.syslog.address"},
		{"logging: {access: {destination: {type: Container}, httpLogFormat: '%ci \"%r\"', logEmptyRequests: Ignore}}", "syslog-level=info | syslog-format=\"%ci \\\"%r\\\"\" | dont-log-null=true", "spec.logging.access.destination.type"},
		{"logging: {access: {destination: {type: Syslog, syslog: {address: a, port: 1}}, httpCaptureHeaders: {request: [{name: Host, maxLength: 20}, {name: X, maxLength: 1}], response: [{name: Server, maxLength: 5}]}, httpCaptureCookies: [{matchType: Exact, name: foo, maxLength: 9}]}}", "syslog-address=a:1 | syslog-level=info | capture-http-request-headers=Host:20,X:1 | capture-http-response-headers=Server:5 | capture-http-cookie=foo=:9", ""},
		{"logging: {access: {destination: {type: Syslog, syslog: {address: a, port: 1}}, httpCaptureCookies: [{matchType: Prefix, namePrefix: f}], logEmptyRequests: Log}}", "syslog-address=a:1 | syslog-level=info | capture-http-cookie=f:256 | dont-log-null=false", ""},

		{"httpHeaders: {forwardedHeaderPolicy: IfNone}", "set-forwarded-headers=if-none", ""},
		{"httpHeaders: {forwardedHeaderPolicy: Append}", "set-forwarded-headers=append", ""},
		{"httpHeaders: {forwardedHeaderPolicy: Replace}", "set-forwarded-headers=replace", ""},
		{"httpHeaders: {forwardedHeaderPolicy: Never}", "set-forwarded-headers=never", ""},
		{"httpHeaders: {uniqueId: {name: x-id}}", `unique-id-header-name=x-id | unique-id-format="%{+X}o %ci:%cp_%fi:%fp_%Ts_%rt:%pid"`, ""},
		{"httpHeaders: {uniqueId: {name: x-id, format: '%rt'}}", `unique-id-header-name=x-id | unique-id-format="%{+X}o %ci:%cp_%fi:%fp_%Ts_%rt:%pid" | unique-id-format="%rt"`, ""},
		{"httpHeaders: {uniqueId: {format: '%rt'}}", "", ""},
		{"httpHeaders: {headerNameCaseAdjustments: [Host, X-Forwarded-For]}", "http-header-name-case-adjustments=Host,X-Forwarded-For", ""},
		{"httpHeaders: {actions: {request: [{name: X-A, action: {type: Set, set: {value: 'a b,c'}}}, {name: X-B, action: {type: Delete}}], response: [{name: Server, action: {type: Delete}}]}}", "set-delete-http-request-header=X-A:a+b%2Cc:Set,X-B:Delete | set-delete-http-response-header=Server:Delete", ""},
		{"httpHeaders: {actions: {request: [{name: X-A, action: {type: Set}}, {name: X-B, action: {type: Delete}}]}}", "set-delete-http-request-header=X-B:Delete", "spec.httpHeaders.actions.request[0].action.type"},

		{"httpErrorCodePages: {name: pages}", "errorfile-503=ConfigMap openshift-config/pages, error-page-503.http <- 503 | errorfile-404=ConfigMap openshift-config/pages, error-page-404.http <- 404", ""},
		{"httpErrorCodePages: {name: ca}", "", "spec.httpErrorCodePages spec.httpErrorCodePages"},
		{"httpEmptyRequestsPolicy: Ignore", "http-ignore-probes=true", ""},
		{"httpEmptyRequestsPolicy: Respond", "http-ignore-probes=false", ""},
		{"closedClientConnectionPolicy: Abort", "abort-on-close=true", ""},
		{"closedClientConnectionPolicy: Continue", "abort-on-close=false", ""},
		{"idleConnectionTerminationPolicy: Deferred", "idle-close-on-response=true", ""},
		{"idleConnectionTerminationPolicy: Immediate", "idle-close-on-response=false", ""},
		{"httpCompression: {mimeTypes: [text/html, 'text/css; charset=utf-8']}", `enable-compression=true | compression-mime=text/html "text/css; charset=utf-8"`, ""},

		{"tuningOptions: {headerBufferBytes: 65536, headerBufferMaxRewriteBytes: 16384}", "buf-size=65536 | max-rewrite-size=16384", ""},
		{"tuningOptions: {headerBufferBytes: 16384}", "buf-size=16384", ""},
		{"tuningOptions: {headerBufferBytes: 16383}", "", "spec.tuningOptions.headerBufferBytes"},
		{"tuningOptions: {headerBufferMaxRewriteBytes: 4095}", "", "spec.tuningOptions.headerBufferMaxRewriteBytes"},
		{"tuningOptions: {headerBufferMaxRewriteBytes: 32768}", "", "spec.tuningOptions.headerBufferBytes"},
		{"tuningOptions: {clientTimeout: 90s, clientFinTimeout: 1500ms, serverTimeout: 1h, serverFinTimeout: 7us, connectTimeout: 2m, tunnelTimeout: 25h, tlsInspectDelay: 3s, httpKeepAliveTimeout: 60s}",
			"default-client-timeout=90s | client-fin-timeout=1500ms | default-server-timeout=1h | default-server-fin-timeout=7us | default-connect-timeout=2m | default-tunnel-timeout=25h | inspect-delay=3s | slowloris-http-keepalive=1m", ""},
		{"tuningOptions: {clientTimeout: 0s, serverTimeout: 2000h}", "default-server-timeout=2147483647ms", ""},
		{"tuningOptions: {clientTimeout: -1s, serverTimeout: 5s}", "default-server-timeout=5s", "spec.tuningOptions.clientTimeout"},
		{"tuningOptions: {clientTimeout: often, serverTimeout: 5s, maxConnections: many}", "default-server-timeout=5s", "spec.tuningOptions.clientTimeout spec.tuningOptions.maxConnections"},
		{"tuningOptions: {healthCheckInterval: 1s}", "backend-check-interval=1s", ""},
		{"tuningOptions: {healthCheckInterval: 999ms}", "", "spec.tuningOptions.healthCheckInterval"},
		{"tuningOptions: {maxConnections: -1}", "max-connections=auto", ""},
		{"tuningOptions: {maxConnections: 0}", "", ""},
		{"tuningOptions: {maxConnections: 2000}", "max-connections=2000", ""},
		{"tuningOptions: {maxConnections: 2000000}", "max-connections=2000000", ""},
		{"tuningOptions: {maxConnections: 1999}", "", "spec.tuningOptions.maxConnections"},
		{"tuningOptions: {maxConnections: 2000001}", "", "spec.tuningOptions.maxConnections"},
		{"{tuningOptions: {threadCount: 8, reloadInterval: 30s}, haproxyVersion: '3.2', configurationManagement: Dynamic}", "", "spec.tuningOptions.threadCount spec.tuningOptions.reloadInterval spec.configurationManagement spec.haproxyVersion"},
		{"unsupportedConfigOverrides: {loadBalancingAlgorithm: leastconn, mutualTLSHeaderFilter: false, contStats: true, more: 1}", "load-balance-algorithm=leastconn | mutual-tls-header-filter=false", "spec.unsupportedConfigOverrides.contStats spec.unsupportedConfigOverrides.more"},
		{"unsupportedConfigOverrides: [1]", "", "spec.unsupportedConfigOverrides"},
		{"{domain: [], httpHeaders: wrong, routeAdmission: {wildcardPolicy: WildcardsAllowed}}", "allow-wildcard-routes=true", "spec.domain spec.httpHeaders"},
	} {
		spec := c.spec
		if !strings.HasPrefix(spec, "{") {
			spec = "{" + spec + "}"
		}
		out := Translate(Input{Object: object(t, "{metadata: {namespace: openshift-ingress-operator, name: web}, spec: "+spec+"}"), Others: others(t)})
		if got := given(out); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.spec, got, c.want)
		}
		if got := found(out); got != c.findings {
			t.Errorf("%s: findings %q, want %q: %v", c.spec, got, c.findings, out.Findings)
		}
	}
}

// others are the objects that the fields of TestFields refer to.
func others(t *testing.T) map[Ref]Referred {
	t.Helper()
	config := func(name string) Ref {
		return Ref{source.ConfigMap, source.Key{Namespace: configNamespace, Name: name}}
	}
	secret := func(name string) Ref { return Ref{source.Secret, source.Key{Namespace: routerNamespace, Name: name}} }
	return map[Ref]Referred{
		config("ca"):     {Object: object(t, "{data: {ca-bundle.pem: PEM}}")},
		config("pages"):  {Object: object(t, "{data: {error-page-503.http: '503', error-page-404.http: '404'}}")},
		config("gone"):   {},
		secret("cert"):   {Object: object(t, "{data: {tls.crt: Q0VSVA==, tls.key: S0VZ}}")},
		secret("locked"): {Err: "forbidden"},
	}
}

// TestProfiles: versions, cipher suites and groups by profile; that of the API server counts where there is none.
func TestProfiles(t *testing.T) {
	const intermediate = "TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384 " +
		"TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256 X25519MLKEM768:X25519:secp256r1:secp384r1"
	for _, c := range []struct{ spec, api, want, findings string }{
		{"{}", "", intermediate, ""},
		{"{tlsSecurityProfile: {type: Intermediate}}", "Modern", intermediate, ""},
		{"{tlsSecurityProfile: {type: Modern}}", "", "TLSv1.3 - TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256 X25519MLKEM768:X25519:secp256r1:secp384r1", ""},
		{"{}", "Modern", "TLSv1.3 - TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256 X25519MLKEM768:X25519:secp256r1:secp384r1", ""},
		{"{tlsSecurityProfile: {type: Custom, custom: {minTLSVersion: VersionTLS10, ciphers: [AES128-SHA, TLS_AES_128_GCM_SHA256]}}}", "", "TLSv1.1 AES128-SHA TLS_AES_128_GCM_SHA256 X25519MLKEM768:X25519:secp256r1:secp384r1:secp521r1", ""},
		{"{tlsSecurityProfile: {type: Custom, custom: {minTLSVersion: VersionTLS12, ciphers: [AES128-SHA], groups: [secp256r1, X25519]}}}", "", "TLSv1.2 AES128-SHA - secp256r1:X25519", ""},
		{"{tlsSecurityProfile: {type: Custom, custom: {minTLSVersion: VersionTLS99, ciphers: [AES128-SHA]}}}", "", "TLSv1.2 AES128-SHA - X25519MLKEM768:X25519:secp256r1:secp384r1:secp521r1", "spec.tlsSecurityProfile.minTLSVersion"},
		{"{tlsSecurityProfile: {type: Ancient}}", "", intermediate, "spec.tlsSecurityProfile"},
	} {
		of := others(t)
		if c.api != "" {
			of[apiServer] = Referred{Object: object(t, "{spec: {tlsSecurityProfile: {type: "+c.api+"}}}")}
		}
		out := Translate(Input{Object: object(t, "{metadata: {name: web}, spec: "+c.spec+"}"), Others: of})
		value := map[string]string{"ciphers": "-", "ciphersuites": "-"}
		for _, s := range out.Settings {
			value[s.Flag] = s.Value
		}
		if got := fmt.Sprint(value["ssl-min-version"], " ", value["ciphers"], " ", value["ciphersuites"], " ", value["curves"]); got != c.want || found(out) != c.findings {
			t.Errorf("%s:\n got %s %v\nwant %s %s", c.spec, got, out.Findings, c.want, c.findings)
		}
	}
	old := Translate(Input{Object: object(t, "{spec: {tlsSecurityProfile: {type: Old}}}")})
	for _, s := range old.Settings {
		if s.Flag == "ssl-min-version" && s.Value != "TLSv1.1" || s.Flag == "ciphers" && !strings.HasSuffix(s.Value, ":DES-CBC3-SHA") {
			t.Errorf("Old: %+v", s)
		}
	}
}

// TestAnnotations: those of the IngressController count before those of the cluster's Ingress configuration.
func TestAnnotations(t *testing.T) {
	const http2, stop = "ingress.operator.openshift.io/default-enable-http2", "ingress.operator.openshift.io/hard-stop-after"
	for _, c := range []struct{ own, cluster, http2, stop, findings string }{
		{"{}", "{}", "true", "", ""},
		{"{" + http2 + ": 'true', " + stop + ": 30m}", "{}", "false", "30m", ""},
		{"{}", "{" + http2 + ": 'true', " + stop + ": 1d}", "false", "1d", ""},
		{"{" + http2 + ": 'false'}", "{" + http2 + ": 'true'}", "true", "", ""},
		{"{" + http2 + ": maybe}", "{}", "true", "", "annotation " + http2},
	} {
		out := Translate(Input{Object: object(t, "{metadata: {name: web, annotations: "+c.own+"}}"), Others: map[Ref]Referred{ingress: {Object: object(t, "{metadata: {annotations: "+c.cluster+"}}")}}})
		value := map[string]string{}
		for _, s := range out.Settings {
			value[s.Flag] = s.Value
		}
		if value["disable-http2"] != c.http2 || value["hard-stop-after"] != c.stop || found(out) != c.findings {
			t.Errorf("%+v: %v, %v", c, value, out.Findings)
		}
	}
}

// TestIdentity: the name of the router, and its domain once the operator has decided it.
func TestIdentity(t *testing.T) {
	out := Translate(Input{Object: object(t, "{metadata: {name: web}, spec: {}, status: {domain: apps.example.com, endpointPublishingStrategy: {type: Private, private: {protocol: PROXY}}}}")})
	if got, want := given(out), "router-domain=apps.example.com | router-canonical-hostname=router-web.apps.example.com | use-proxy-protocol=true"; got != want || out.Settings[0].Value != "web" {
		t.Errorf("got %s, want %s", got, want)
	}
	if out := Translate(Input{}); len(out.Settings)+len(out.Findings) != 0 {
		t.Errorf("of nothing: %+v", out)
	}
}
