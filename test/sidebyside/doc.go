// Package sidebyside has the same raw conversations with Turnout and with HAProxy, configured as the router of OpenShift configures
// it: what pods get and what clients get is the same, or the difference has a row in docs/differences.md. README.md of testdata
// describes the language. Where HAProxy is not installed, or is of a version other than the one that was measured, Turnout is compared
// with what is written down.
package sidebyside
