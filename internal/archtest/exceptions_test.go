package archtest

import (
	"sync"
	"testing"
)

// exceptions are the places that break a rule on purpose: rule, place, reason.
// Keep it short: each line is a debt or a decision.
var exceptions = []struct{ rule, place, reason string }{
	{"name", "proxy/uniqueid.go UniqueIDConfig.Header", "an option; NewUniqueID judges it by field.CheckName"},
	{"pure", "controller/admit/admit.go os", "os.Expand is a function of text; it reads nothing"},
	{"file", "controller/shard/api/zz_generated.deepcopy.go", "make generate writes it, nobody reads it"},
	{"skip", "bench/budget/budget_test.go", "only strace counts system calls; CI installs it"},
	{"skip", "bench/peer/config_test.go", "only HAProxy can say whether it accepts a configuration; CI installs it"},
	{"skip", "tlsmux/tools_test.go", "other people's TLS programs are the oracle; CI installs them"},
	{"skip", "proxy/identity/haproxy_test.go", "what HAProxy says of a certificate is the oracle; CI installs it"},
	{"skip", "cmd/turnout/httplog_test.go", "what HAProxy writes in its log is the oracle; CI installs it"},
	{"skip", "deploy/standin/logs_test.go", "what rsyslogd prints is the oracle; CI installs it"},
	{"skip", "cmd/turnout/prometheus_test.go", "what Prometheus makes of a scrape is the point; CI installs it"},
	{"skip", "test/deploy/monitoring_test.go", "promtool and kubectl are the oracles; CI installs them"},
	{"skip", "cmd/turnout/mutualtls_tools_test.go", "other people's TLS programs are the oracle; CI installs them"},
	{"skip", "cmd/turnout/h2spec_test.go", "h2spec is the oracle; make h2spec and CI install it"},
	{"skip", "internal/server/ports_test.go", "what curl makes of certificates, alerts and 421 is the point; CI installs it"},
	{"skip", "proxy/h2/curl_test.go", "how curl reads an answer that comes early is the point; CI installs it"},
	{"skip", "internal/dns/server/dig_test.go", "what dig complains about is the point; CI installs it"},
	{"skip", "internal/dns/server/knot_test.go", "a secondary that others wrote is the oracle; CI installs it"},
	{"skip", "internal/dns/zonefile/zonefile_test.go", "a server that others wrote is the oracle; CI installs it"},
	{"skip", "cmd/turnout/demo_test.go", "the tour is made of curl commands; CI installs it"},
}

// used remembers which exceptions were needed.
var used sync.Map

// excused says whether place may break rule.
func excused(t *testing.T, rule, place string) bool {
	t.Helper()
	for i, e := range exceptions {
		if e.rule == rule && e.place == place {
			used.Store(i, true)
			return true
		}
	}
	return false
}

// TestExceptionsAreNeeded runs the rules that take exceptions, so that it does not
// depend on the order of tests, and then looks which were used.
func TestExceptionsAreNeeded(t *testing.T) {
	for _, rule := range []func(*testing.T){
		TestFileSizes, TestFunctionSizes, TestNoGlobalState, TestNoSkips, TestNoSleeps, TestExternalImports, TestPurePackages, TestCalls, TestAddressesHaveOneConstructor,
	} {
		rule(t)
	}
	for i, e := range exceptions {
		if _, ok := used.Load(i); !ok {
			t.Errorf("the exception %q for %s is not needed any more", e.rule, e.place)
		}
		if e.reason == "" {
			t.Errorf("the exception %q for %s has no reason", e.rule, e.place)
		}
	}
}
