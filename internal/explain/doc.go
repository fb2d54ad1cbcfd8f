// Package explain says what would become of a request, and why: which certificate and which route it gets, why other routes do not get it,
// what the pod would be sent, which pod, and what the client would be answered.
//
// It decides nothing. A request is read by the codecs (h1.ReadHead, h2.ReadHead), its server name is looked up as tlsmux does, and then it
// runs through a proxy.Worker that rehearses (proxy.Config.Rehearse): the pipeline itself, whose endpoint and client are this package, and which
// changes no counter, limit or pool. What the pipeline logs and sends is the explanation; beside it stand what the table, the pools and the
// controller know.
//
// Answer is what comes of it, as JSON and as text. Its shape only ever grows.
package explain
