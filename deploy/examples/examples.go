// Package examples holds one commented manifest per kind of route, embedded for
// the demo and the tests. The pods behind the services are not part of them.
package examples

import "embed"

//go:embed *.yaml
var files embed.FS

// Files returns the manifests, all in the root folder.
func Files() embed.FS { return files }
