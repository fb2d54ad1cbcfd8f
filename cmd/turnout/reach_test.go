package main

import (
	"slices"
	"testing"
	"time"
)

// TestReachOfOptions: flags and variables that say how a cluster is reached decide where objects come from.
func TestReachOfOptions(t *testing.T) {
	pod := []string{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}
	for _, c := range []struct {
		env, args      []string
		cluster, asked bool
		delay          time.Duration
	}{
		{nil, nil, false, false, 0},
		{[]string{"KUBECONFIG", "/a:/b"}, nil, true, false, 0},
		{[]string{"KUBERNETES_MASTER", "https://m.test"}, nil, true, false, 0},
		{[]string{"KUBECONFIG", "/a:/b"}, []string{"--manifests=m"}, false, false, 0},
		{append([]string{"KUBECONFIG", "/a"}, pod...), nil, true, false, 45 * time.Second},
		{nil, []string{"--config=/a"}, true, true, 0},
		{nil, []string{"--context=prod"}, true, true, 0},
		{nil, []string{"--server=https://s.test", "--token", "t"}, true, true, 0},
		{pod, []string{"--as=system:admin"}, true, true, 0},
	} {
		env := envOf(c.env...)
		o := parse(t, env, c.args...)
		o.useCluster(env)
		if o.cluster != c.cluster || o.reach.Asked() != c.asked || max(o.shutdownDelay, 0) != c.delay {
			t.Errorf("%v %v: cluster %v, asked %v, delay %v", c.env, c.args, o.cluster, o.reach.Asked(), o.shutdownDelay)
		}
	}
	o := parse(t, envOf("KUBECONFIG", "/a::/b", "ROUTER_METRICS_READY_HTTP_URL", "http://localhost/x", "ROUTER_METRICS_HAPROXY_SERVER_THRESHOLD", "7"), "--as=me", "--as-group=g", "--as-group=h", "-n=ns/here")
	if !slices.Equal(o.reach.Files, []string{"/a", "/b"}) || !slices.Equal(o.reach.AsGroups, []string{"g", "h"}) || o.namespace != "here" || o.adminPort.ReadyURL.Path != "/x" || o.metrics.ServerThreshold != 7 {
		t.Errorf("%+v %s", o.reach, o.namespace)
	}
}

// TestEveryFlagIsAccepted: the command line of the HAProxy router, in full.
func TestEveryFlagIsAccepted(t *testing.T) {
	texts := map[string]string{ // flag: a value; others take "x"
		"resync-interval": "10m", "stats-port": "1936", "listen-addr": "127.0.0.1:1936", "metrics-type": "haproxy", "ciphers": "modern", "max-connections": "2000",
		"router-canonical-hostname": "router.example.com", "interval": "5s", "commit-interval": "1h", "capture-http-request-headers": "Host:32",
		"capture-http-response-headers": "Server:32", "capture-http-cookie": "a=:16", "set-delete-http-request-header": "X-A:Delete",
		"set-delete-http-response-header": "X-A:Delete", "hostname-template": "${name}.test", "request-timeout": "30s", "v": "2", "fields": "spec.host=x", "blueprint-route-pool-size": "10",
	}
	flags := map[string]bool{ // flag: whether it is a boolean
		"bind-ports-after-sync": true, "strict-sni": true, "haproxy-config-manager": true, "update-status": true, "override-hostname": true,
		"include-udp-endpoints": true, "allow-wildcard-routes": true, "disable-namespace-ownership-check": true, "extended-validation": true,
		"upgrade-validation": true, "debug-upgrade-validation-force-add-condition": true, "debug-upgrade-validation-force-remove-condition": true,
		"enable-ingress": true, "watch-endpoints": true, "allow-external-certificates": true, "insecure-skip-tls-verify": true, "disable-compression": true,
		"logtostderr": true, "alsologtostderr": true, "add-dir-header": true, "one-output": true, "skip-headers": true, "skip-log-headers": true,
	}
	for _, name := range []string{
		"working-dir", "default-certificate", "default-certificate-path", "default-certificate-dir", "default-destination-ca-path", "template", "reload",
		"interval", "max-connections", "ciphers", "metrics-type", "commit-interval", "blueprint-route-namespace", "blueprint-route-labels",
		"blueprint-route-pool-size", "max-dynamic-servers", "capture-http-request-headers", "capture-http-response-headers", "capture-http-cookie",
		"http-header-name-case-adjustments", "set-delete-http-response-header", "set-delete-http-request-header", "stats-port", "stats-password-file",
		"stats-user-file", "stats-password", "stats-user", "name", "router-canonical-hostname", "resync-interval", "hostname-template", "router-domain",
		"override-domains", "labels", "fields", "project-labels", "namespace-labels", "denied-domains", "allowed-domains", "listen-addr",
		"config", "server", "token", "certificate-authority", "client-certificate", "client-key", "context", "cluster", "user", "as", "as-uid", "as-group",
		"tls-server-name", "proxy-url", "request-timeout", "namespace", "n",
		"v", "vmodule", "stderrthreshold", "log-backtrace-at", "log-dir", "log-file", "log-file-max-size",
	} {
		flags[name] = false
	}
	for name, isBool := range flags {
		value := texts[name]
		if value == "" {
			value = "x"
		}
		forms := [][]string{{"--" + name + "=" + value}, {"--" + name, value}, {"-" + name, value}}
		if isBool {
			forms = [][]string{{"--" + name}, {"--" + name + "=true"}, {"--" + name + "=false"}}
		}
		for _, args := range forms {
			args = append(args, "--hostname-template=${name}.test") // which some require
			if _, _, err := parseOptions(args, envOf()); err != nil {
				t.Errorf("%v: %v", args, err)
			}
		}
	}
}
