// Command run measures a running router in the scenario that the first argument names:
//
//	go run ./bench/run list
//	go run ./bench/run storm -pairs 3
//	go run ./bench/run storm -h
//
// bench/README.md says what each scenario measures and what makes it fail.
package main

import (
	"os"
	"slices"

	"turnout/bench/adversary"
	"turnout/bench/budget"
	"turnout/bench/chaos"
	"turnout/bench/peer"
	"turnout/bench/site"
	"turnout/bench/soak"
)

func scenarios() []site.Scenario {
	return []site.Scenario{
		adversary.Scenario(),
		budget.Scenario(),
		chaos.Scenario(),
		{Name: "checks", About: "what the health checks of many endpoints cost a router that does nothing else", Flags: checks},
		{Name: "idle", About: "memory of idle connections: plain, TLS 1.3, TLS 1.2, HTTP/2", Flags: idle},
		{Name: "loops", About: "two event loops against one: processor time, connections of each, and what a busy connection costs its neighbours", Flags: loops},
		{Name: "memory", About: "memory of a router with 10,000 routes at rest, from a folder and from a cluster, and who holds it", Flags: memory},
		{Name: "passthrough", About: "connections that are passed through, all open at the same time", Flags: passthrough},
		{Name: "slow", About: "slow attackers (slowhttptest), and what others notice of them", Flags: slow},
		peer.Scenario(),
		peer.Confirm(),
		{Name: "report", About: "charts and tables of documents, from what peer measured", Flags: documents},
		soak.Scenario(),
		{Name: "storm", About: "floods of TLS handshakes, and what open connections notice of them", Flags: storm},
		{Name: "streams", About: "HTTP/2: a long download next to HTTP/1.1, and many streams at once", Flags: streams},
	}
}

// roles are what this program is in processes of its own.
func roles() []site.Role {
	return slices.Concat([]site.Role{{Name: holderRole, Run: hold}, {Name: generatorRole, Run: generate}}, adversary.Roles(), chaos.Roles(), peer.Roles())
}

func main() {
	os.Exit(site.Main(scenarios(), roles(), os.Args[1:], os.Stdout, os.Stderr))
}
