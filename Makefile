# Every target says what it does: make help.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run test race lint ci bench bench-peer fuzz image test-image fmt build build-openssl test-openssl cover h2spec interop upgrades rollouts slow reliability

GO       ?= go
FUZZTIME ?= 10s
# The shortest time after which the endpoint of make reliability closes an idle connection.
IDLE     ?= 50ms
# How long make soak goes on.
SOAK     ?= 10m
# What make rules makes.
RULE     := deploy/monitoring/prometheusrule
# What make image makes.
IMAGE    ?= localhost/turnout
# The nearest tag; before there is one, the number of commits and the last of them.
VERSION  ?= $(shell git describe --tags --dirty 2>/dev/null || \
	(n=$$(git rev-list --count HEAD) && echo "v0.0.0-dev.$$n-g$$(git describe --always --dirty)") 2>/dev/null || echo unknown)
ARCH     ?= $(shell $(GO) env GOARCH)
BUILDER  ?= $(shell command -v buildah || command -v podman)
# The version the rules in .golangci.yml were written for.
GOLANGCI := v2.15.0
# Without this tag gRPC brings pages of its own and html/template with them, and with that the linker keeps every exported method: 10 MiB.
TAGS     := grpcnotrace
H2SPEC   := v2.2.1+incompatible

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/turnout
	$(GO) build -tags $(TAGS) -ldflags '-X main.release=$(VERSION)' -o bin/turnout ./cmd/turnout

build-openssl: ## build bin/turnout-openssl, which signs with the system's libcrypto (needs a C compiler and libssl-dev)
	CGO_ENABLED=1 $(GO) build -tags openssl,$(TAGS) -ldflags '-X main.release=$(VERSION)' -o bin/turnout-openssl ./cmd/turnout

test-openssl: ## tests of what the tag openssl changes (needs a C compiler and libssl-dev)
	$(GO) vet -tags openssl ./internal/opensslkey ./routing ./tlsmux
	$(GO) test -race -short -tags openssl ./internal/opensslkey ./routing ./tlsmux

# The port of plain HTTP of make run.
PORT     ?= 8080

run: build ## start the demo: router, examples and small backends in one process; PORT=8080 is that of plain HTTP
	bin/turnout demo --http-addr 127.0.0.1:$(PORT)

# One package more at a time than there are cores, because some wait for clocks and other processes. The linters vet. The race detector makes
# it three times as long, and allocates: allocations are tested without it, where there are tests of them.
RACE ?=
# It also sleeps at the end of each process, a second unless told otherwise: of tests, and of routers they start.
test race: export GORACE := atexit_sleep_ms=50
test: ## everything a newcomer needs: all tests, no root (4 minutes on two cores); RACE=-race: with the race detector (11)
	$(GO) test $(RACE) -short -vet=off -p $$(($$(getconf _NPROCESSORS_ONLN) + 1)) -timeout 10m ./...
ifneq ($(RACE),)
	$(GO) test -run 'Alloc' -vet=off -timeout 120s $$(grep -rlE '^func Test[A-Za-z0-9]*Alloc' --include=*_test.go . | xargs dirname | sort -u)
endif

race: ## all tests, the long ones too, with the race detector
	$(GO) test -race -count 1 -timeout 20m ./...

# Each module, and what only builds with tags. The tag openssl needs a C compiler and libssl-dev.
lint: bin/golangci-lint ## gofmt and the linters of .golangci.yml, in all modules
	@out=$$(gofmt -l .); test -z "$$out" || { echo "not formatted by gofmt:" $$out >&2; exit 1; }
	bin/golangci-lint run ./...
	bin/golangci-lint run --build-tags image,testssl ./test/image ./test/testssl
	@[ ! -e /usr/include/openssl/evp.h ] || (set -x; bin/golangci-lint run --build-tags openssl ./internal/opensslkey)
	@for module in $(dir $(wildcard test/*/go.mod)); do (set -x; cd $$module && $(CURDIR)/bin/golangci-lint run ./...) || exit 1; done

# An installed golangci-lint of the right version is used; otherwise it is built.
bin/golangci-lint:
	@mkdir -p bin
	@if golangci-lint version 2>/dev/null | grep -q "version $(GOLANGCI:v%=%) "; then \
		ln -sf "$$(command -v golangci-lint)" $@; \
	else \
		GOBIN=$(CURDIR)/bin $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI); \
	fi

# The version of the generator stands in what it makes.
CONTROLLER_GEN := v0.20.0
.PHONY: generate
generate: ## deploy/crd and deep copies of controller/shard/api, from its types
	$(GO) run sigs.k8s.io/controller-tools/cmd/controller-gen@$(CONTROLLER_GEN) object crd paths=./controller/shard/api output:crd:dir=deploy/crd output:object:dir=controller/shard/api

fmt: ## format the code
	gofmt -w .

reliability: ## no request is lost: print the numbers of docs/lab/reliability.md (IDLE=1s: endpoints that close after 1 to 5 s)
	$(GO) test -count 1 -timeout 20m -v -run 'TestIdleCloseLosesNoRequest|TestRetriesKeepToTheBudget' ./proxy/h1 -args -idle-from $(IDLE)
	$(GO) test -count 1 -race -v -run 'TestLimitUnderLoad|TestRealQueue' ./balancer ./proxy/h1

.PHONY: checks
checks: build ## what the health checks of 20,000 endpoints cost a router that does nothing else, by kind (6 minutes)
	$(GO) run ./bench/run checks

.PHONY: balancing
balancing: ## shares of pods against their weights, and what choosing one of 1 to 1,000 costs (2 minutes)
	$(GO) test -count 1 -v -run 'Shares|Turns' ./balancer
	$(GO) test -run '^$$' -bench '^BenchmarkPick' -benchmem ./balancer

.PHONY: limits
limits: ## a million addresses, allow-lists of 10,000 networks, probes at every bound (a minute)
	$(GO) test -count 1 -v -run 'AMillion|FreesNobody' ./internal/ratelimit
	$(GO) test -run '^$$' -bench AllowList ./routing
	$(GO) test -count 1 -v -run 'TestHealthAt|TestHealthWithout|TestTooLittleMemory|TestLateLoops' ./cmd/turnout

# Each test binary is linked once for all targets of its package, as go test -fuzz would for each of them. Only this module has targets.
fuzz: ## run every fuzz target for FUZZTIME (10s; 10000x = so many runs)
	@set -e; mkdir -p bin; corpus=$$($(GO) env GOCACHE)/fuzz; \
	for dir in $$(grep -rlE '^func Fuzz' --include=*_test.go . | xargs -n 1 dirname | sort -u); do \
		$(GO) test -c -fuzz . -o bin/fuzz.test $$dir; \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' $$dir/*_test.go); do \
			echo "$$dir $$target"; \
			(cd $$dir && $(CURDIR)/bin/fuzz.test -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZTIME) \
				-test.fuzzminimizetime 200x -test.fuzzcachedir "$$corpus/turnout/$${dir#./}" -test.paniconexit0); \
		done; \
	done

# The packages that have benchmarks: of the others no test binary has to be linked.
BENCHED = $$(grep -rlE '^func Benchmark' --include=*_test.go . | xargs -n 1 dirname | sort -u)

bench: ## benchmarks: host lookup, updates, a whole proxied request
	$(GO) test -run '^$$' -bench . -benchmem $(BENCHED)

.PHONY: bench-once
bench-once: ## each benchmark once: they work
	$(GO) test -short -run '^$$' -bench . -benchtime 1x -timeout 5m $(BENCHED)

.PHONY: bench-certs
bench-certs: ## load 50,000 certificates on one processor: time, memory, and the lookup by server name (takes 2 minutes)
	$(GO) test -run '^$$' -bench BenchmarkCertificates -benchtime 200ms -timeout 20m ./bench

.PHONY: bench-idle bench-passthrough storm
bench-idle: build ## memory of 10,000 idle connections, plain and with TLS (takes 10 minutes)
	$(GO) run ./bench/run idle

# MEMORY holds flags: make memory MEMORY='-cases folder -settle 1m'
MEMORY ?=
.PHONY: memory
memory: build ## what a router holds with 10,000 routes at rest, from a folder and from an API server, and who holds it (5 minutes)
	$(GO) run ./bench/run memory $(MEMORY)

bench-passthrough: build ## 10,000 connections that are passed through, all open at the same time
	$(GO) run ./bench/run passthrough

# STORM holds flags: make storm STORM=-haproxy has HAProxy beside the router (15 minutes).
STORM ?=
storm: build ## floods of TLS handshakes, and what open connections notice of them (needs two cores; takes 7 minutes)
	$(GO) run ./bench/run storm $(STORM)

# The charts and tables of documents are those of the newest results of all cases.
RESULTS  := docs/lab/results/$(shell date -u +%F)
.PHONY: bench-peer-quick bench-report
bench-peer: ## side by side with HAProxy and nginx, all cases: results, charts and tables of documents (haproxy, nginx-light, nghttp2-client; 40 minutes)
	$(GO) run ./bench/run peer -write $(RESULTS)-all.json
	$(GO) run ./bench/run report

bench-peer-quick: ## the same of the main cases, printed and kept as results (6 minutes)
	$(GO) run ./bench/run peer -quick -write $(RESULTS)-quick.json

bench-report: ## charts and tables of documents again, from the newest results of all cases
	$(GO) run ./bench/run report

.PHONY: budget budget-update bench-confirm
budget: build-static ## system calls, allocations and instructions of eight kinds of requests are what bench/budget says (strace, valgrind; 2 minutes)
	$(GO) run ./bench/run budget -turnout bin/turnout-static

budget-update: build-static ## write that file
	$(GO) run ./bench/run budget -turnout bin/turnout-static -update

# valgrind bears no program that starts its threads by libc.
.PHONY: build-static
build-static:
	CGO_ENABLED=0 $(GO) build -tags $(TAGS) -o bin/turnout-static ./cmd/turnout

bench-confirm: ## wrk and h2load find the same ratios to HAProxy as the load generator of bench-peer (wrk, nghttp2-client, haproxy; 12 minutes)
	$(GO) run ./bench/run confirm

# SIM holds flags: SIM='-only CEL', SIM=-draw.
SIM ?=
.PHONY: sim
sim: ## a million routes on 1,000 routers in virtual time, with each strategy: docs/lab/shards.md (an hour, 2 GiB of memory)
	$(GO) run ./bench/shards $(SIM)

.PHONY: bench-loops
bench-loops: build ## two event loops against one: processor time per request, how connections spread, neighbours of a busy connection (a minute)
	$(GO) run ./bench/run loops $(LOOPS)

.PHONY: bench-streams
bench-streams: build ## HTTP/2: a long download next to HTTP/1.1, and many streams at once (a minute)
	$(GO) run ./bench/run streams

h2spec: bin/h2spec ## conformance of HTTP/2: all 146 cases of h2spec with TLS and without, 145 on the port that speaks HTTP/1.1 too
	$(GO) test -count 1 -run 'TestH2Spec|TestWrongPreface' -v ./cmd/turnout

interop: ## the calls of the gRPC interoperability suite through the router
	cd test/grpc && $(GO) test -count 1 -timeout 5m ./...

.PHONY: testssl
testssl: ## what testssl.sh finds in five TLS profiles, and none of it is bad (Debian: testssl.sh; takes 2 minutes)
	$(GO) test -tags testssl -count 1 -timeout 15m -parallel 3 -v ./test/testssl

bin/h2spec:
	GOBIN=$(CURDIR)/bin $(GO) install github.com/summerwind/h2spec/cmd/h2spec@$(H2SPEC)

upgrades: ## replace the running router 20 times under load and count what goes wrong
	$(GO) test -count 1 -run '^TestUpgrade$$' -v ./cmd/turnout

.PHONY: stops
stops: ## tell routers to stop: 20 under load, counting what goes wrong, and others at every moment from their start on (a minute)
	$(GO) test -count 1 -run '^TestStop|^TestSecondSignal' -v ./cmd/turnout

rollouts: ## replace pods of HTTP/1.1 and of HTTP/2 for 60 s under load and count what goes wrong
	$(GO) test -count 1 -run '^TestRollout$$' -v ./cmd/turnout

# RUNS seeds from SEED on in each test, begun within WITHIN of its start: make adversary RUNS=1000000 WITHIN=5m searches for half an hour.
RUNS   ?= 5000
SEED   ?= 1
WITHIN ?= 30s
.PHONY: adversary
adversary: build ## random clients, pods and objects that break the rules in virtual time, then attacks over real sockets: what others notice (6 minutes)
	$(GO) test -count 1 -timeout 0 -v ./test/adversary -runs $(RUNS) -seed $(SEED) -within $(WITHIN)
	$(GO) run ./bench/run adversary

# CHAOS holds flags: make chaos CHAOS=-clock
CHAOS ?=
.PHONY: chaos
chaos: build ## faults around a running router, one after the other, and what clients saw of them (root, iproute2, iptables; 5 minutes)
	$(GO) run ./bench/run chaos $(CHAOS)

.PHONY: soak
soak: build ## mixed load for SOAK=10m (2h, ...), a change each second, 2,000 idle WebSockets: what fails and what grows
	$(GO) run ./bench/run soak -duration $(SOAK)

slow: build ## attack the router with slowhttptest while a client measures (needs slowhttptest; takes 6 minutes)
	$(GO) run ./bench/run slow -connections 2000 -seconds 60

# E2E holds flags of go test: make e2e E2E='-short -v -run TestFlood'
E2E ?=
.PHONY: e2e e2e-bench e2e-preflight e2e-build

e2e: e2e-preflight e2e-build ## tests on a real API server and etcd (root, etcd-server, iproute2; builds kube-apiserver once, minutes)
	cd test/kube && $(GO) test -count 1 -timeout 40m . $(E2E)

e2e-bench: e2e-preflight e2e-build ## the table of docs/lab/scale.md: 1,000 and 10,000 routes on a real API server
	cd test/kube && $(GO) test -count 1 -timeout 40m -run '^TestScale$$' -v . -scale -binary bin/turnout $(E2E)

e2e-preflight:
	@cd test/cluster && $(GO) run ./internal/preflight

e2e-build: cluster-build
	$(GO) build -tags $(TAGS) -o test/kube/bin/turnout ./cmd/turnout
	$(GO) build -tags $(TAGS) -race -o test/kube/bin/turnout-race ./cmd/turnout

# Both in one run, which compiles what they share once. Kept between runs; made again when the versions change.
test/cluster/bin/kube-apiserver: test/cluster/go.mod
	cd test/cluster && $(GO) build -o bin/ k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager
	@touch $@

# T holds flags of go test: make cases T='-run TestClientTLS -v'
.PHONY: cases operator
operator: cluster-build ## the ingress operator's pods with our image, and deploy/manifests, in that cluster (as cases, and socat, kubectl; 5 minutes)
	cd test/cluster && $(GO) test -count 1 -timeout 20m ./operator $(T)

cases: cluster-build ## the cases of OpenShift's own suites, in a stand-in cluster (root, etcd-server, iproute2, nftables, runc; 4 minutes)
	cd test/cluster && $(GO) test -count 1 -timeout 20m ./origin $(T)

.PHONY: shards
shards: cluster-programs ## routes that spread over several routers, in that cluster (as cases)
	cd test/cluster && $(GO) test -count 1 -timeout 20m ./shards $(T)

# GATEWAY holds flags of its test: make gateway-conformance GATEWAY='-only HTTPRouteWeight', '-channel standard', '-crds v1.5.1', '-mode deployment', '-report FILE'.
GATEWAY ?=
.PHONY: gateway-conformance
gateway-conformance: cluster-programs ## the conformance suite of the Gateway API, unmodified, in that cluster (as cases, and kubectl; 10 minutes)
	cd test/gateway && CGO_ENABLED=0 $(GO) test -c -o ../cluster/bin/gateway-suite .
	cd test/gateway && CGO_ENABLED=0 $(GO) build -o ../cluster/bin/echo-basic sigs.k8s.io/gateway-api/conformance/echo-basic
	cd test/gateway/coredns && CGO_ENABLED=0 $(GO) build -o ../../cluster/bin/coredns .
	cd test/cluster && $(GO) test -count 1 -timeout 40m -v ./gateway $(GATEWAY)

# SCALE holds flags of its test; SCALE= is short.
SCALE ?= -full
.PHONY: gateway-scale
gateway-scale: cluster-programs ## up to 5,000 HTTPRoutes in that cluster: how soon they are served and counted, what fails while they change (as cases; 10 minutes, SCALE= 1 minute)
	cd test/cluster && $(GO) test -count 1 -timeout 40m -v ./gatewayscale $(SCALE)

# SIZE holds flags of its test.
SIZE ?= -routes 10000 -samples 200
.PHONY: size
size: cluster-programs ## three routers with 10,000 routes while that cluster is in disorder (as cases; 8 minutes, SIZE= 1 minute)
	cd test/cluster && $(GO) test -count 1 -timeout 30m -v ./size $(SIZE)

# CLUSTER holds flags: make cluster CLUSTER='-nodes 3 -forward 127.0.0.1:8080=10.100.0.1:80'. T holds flags of go test.
CLUSTER ?=
T       ?=
.PHONY: cluster test-cluster cluster-preflight cluster-build

cluster: cluster-preflight cluster-build bin/image/rootfs.tar ## a cluster to play with, until Ctrl-C: prints a kubeconfig (root, etcd-server, iproute2, nftables, runc)
	rm -rf test/cluster/bin/turnout-image && mkdir -p test/cluster/bin/turnout-image
	tar --xattrs --xattrs-include='*' -C test/cluster/bin/turnout-image -xf bin/image/rootfs.tar
	cd test/cluster && $(GO) build -o bin/cluster ./cmd/cluster
	cd test/cluster && bin/cluster -router bin/turnout-image $(CLUSTER)

test-cluster: cluster-preflight cluster-build ## tests of that cluster: T='-run TestName -v' (2 minutes)
	cd test/cluster && $(GO) test -count 1 -timeout 20m . ./internal/... ./await ./load ./sandbox ./process ./pki ./cmd/... $(T)

cluster-preflight:
	@cd test/cluster && $(GO) run ./internal/preflight runc=runc nft=nftables

cluster-build: test/cluster/bin/kube-apiserver

# What runs in the pods of suites that make no image.
.PHONY: cluster-programs
cluster-programs: cluster-build
	CGO_ENABLED=0 $(GO) build -tags $(TAGS) -o test/cluster/bin/turnout ./cmd/turnout
	cd test/cluster && CGO_ENABLED=0 $(GO) build -o bin/echo ./origin/internal/echo

cover: ## which lines the tests reach
	$(GO) test -short -coverprofile bin/cover.out ./...
	$(GO) tool cover -func bin/cover.out | tail -1

ci: ## the first part of CI (installs what is missing; root for the suites on real API servers; 13 to 20 minutes); the second is .ci/run rest
	.ci/run change

# BUILDER is buildah or podman, with its global options if it needs any. Docker
# takes the same Dockerfile: make bin/image/rootfs.tar, docker build -f deploy/Dockerfile bin/image
image: bin/image/rootfs.tar ## the container images IMAGE:VERSION and IMAGE:VERSION-openshift, with buildah or podman and without a registry
	@test -n "$(BUILDER)" || { echo "make image: needs buildah or podman (Debian: apt-get install buildah)" >&2; exit 1; }
	$(BUILDER) build --isolation chroot --platform linux/$(ARCH) --label org.opencontainers.image.version=$(VERSION) \
		-t $(IMAGE):$(VERSION) -t $(IMAGE):latest -f deploy/Dockerfile bin/image
	$(BUILDER) build --isolation chroot --platform linux/$(ARCH) --label org.opencontainers.image.version=$(VERSION) \
		-t $(IMAGE):$(VERSION)-openshift -t $(IMAGE):openshift -f deploy/Dockerfile.openshift bin/image

# SIGNATURES=openssl links libcrypto in, statically, as the image has no libraries; the
# linker's warnings are of functions that take libraries at run time, which nothing calls.
.PHONY: bin/image/rootfs.tar
bin/image/rootfs.tar: IMAGE_LDFLAGS := -s -w -X main.release=$(VERSION)
bin/image/rootfs.tar:
ifeq ($(SIGNATURES),openssl)
	CGO_ENABLED=1 GOOS=linux GOARCH=$(ARCH) $(GO) build -trimpath -buildvcs=false -tags openssl,netgo,osusergo,$(TAGS) \
		-ldflags '$(IMAGE_LDFLAGS) -linkmode external -extldflags "-static"' -o bin/image/turnout ./cmd/turnout
else
	CGO_ENABLED=0 GOOS=linux GOARCH=$(ARCH) $(GO) build -trimpath -buildvcs=false -tags $(TAGS) -ldflags '$(IMAGE_LDFLAGS)' -o bin/image/turnout ./cmd/turnout
endif
	CGO_ENABLED=0 GOOS=linux GOARCH=$(ARCH) $(GO) build -trimpath -buildvcs=false -ldflags '-s -w' -o bin/image/standin ./deploy/standin
	$(GO) run ./deploy/rootfs bin/image/turnout $@
	$(GO) run ./deploy/rootfs bin/image/turnout bin/image/rootfs-openshift.tar bin/image/standin

.PHONY: rules
rules: ## make the PrometheusRule of deploy/monitoring from its alerts.yaml
	{ sed '/^spec:/q' $(RULE).yaml; sed -n '/^groups:/,$$s/^/  /p' $(dir $(RULE))alerts.yaml; } >$(RULE).new && mv $(RULE).new $(RULE).yaml

test-image: ## build the image and run it (needs root, buildah, podman, runc)
	$(GO) test -tags image -count 1 -timeout 20m ./test/image
