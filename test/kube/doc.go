// Package kube tests the router on a real Kubernetes API: kube-apiserver built from its
// Go modules, Debian's etcd, and the turnout program as a process.
//
// It is a module of its own, because the API server brings more modules than the router
// should ever see. Run it with make e2e in the main module; one test:
//
//	sudo make e2e E2E='-run TestName'
//
// Everything runs in a sandbox (package turnout/test/cluster/sandbox): addresses and ports are the
// tests' own, and nothing is left behind. Logs of the last run are in bin/logs.
package kube
