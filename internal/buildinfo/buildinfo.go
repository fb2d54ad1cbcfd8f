// Package buildinfo says which build of the program runs.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"turnout/internal/opensslkey"
)

// Version names the build: release, or module version and the revision it was built
// from, and Go; with the tag openssl its library, too.
func Version(release string) string {
	library := opensslkey.Library()
	if library != "" {
		library = ", signatures by " + library
	}
	if release != "" {
		return release + " " + runtime.Version() + library
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = " " + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	return fmt.Sprintf("%s%s%s %s%s", info.Main.Version, revision, dirty, info.GoVersion, library)
}
