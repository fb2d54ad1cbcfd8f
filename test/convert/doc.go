// Package convert holds the tests of turnout convert through the assembled router: one process serves Routes and Ingresses, and at other ports what was made of them for
// the Gateway API, and the same requests must come to the same in both, but for what the report names.
package convert
