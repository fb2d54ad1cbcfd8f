// Package testssl holds the test that looks at the router with testssl.sh, from outside: make testssl starts it once per
// TLS profile on loopback and compares the findings with those that the profile demands. The test has the build tag
// testssl, because it needs Debian's testssl.sh and a minute.
package testssl
