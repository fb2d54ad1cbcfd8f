// Package deploy holds the tests of deploy/manifests and deploy/monitoring: each file is what the API of
// Kubernetes takes, says what it should about permissions and security, and fits the
// real program; alerts and the dashboard are what a real Prometheus takes.
package deploy
