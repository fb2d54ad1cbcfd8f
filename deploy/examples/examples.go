// Package examples holds one commented manifest per kind of route, embedded for
// the demo and the tests. The pods behind the services are not part of them.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

//go:embed gateway/*.yaml
var gateway embed.FS

// Files returns the manifests, all in the root folder.
func Files() embed.FS { return files }

// Gateway returns those of the Gateway API, which refer to some of Files, in the root folder.
func Gateway() fs.FS {
	root, err := fs.Sub(gateway, "gateway")
	if err != nil {
		panic("BUG: the folder of examples of the Gateway API cannot be opened: " + err.Error())
	}
	return root
}
