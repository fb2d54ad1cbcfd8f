// Package deploy holds the tests of deploy/manifests: each file is what the API of
// Kubernetes takes, says what it should about permissions and security, and fits the
// real program.
package deploy
