// Package archtest holds tests that keep the architecture: who may import whom,
// where the environment is read, how long files and functions get. Each rule says
// why it exists; a failure prints the reason. Exceptions are listed with theirs in
// exceptions_test.go, and one that is no longer needed fails too.
package archtest
