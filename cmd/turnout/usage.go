package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"turnout/internal/opensslkey"
	"turnout/internal/option"
)

// usage prints the help text.
func usage(w io.Writer, program string) {
	fmt.Fprintf(w, `%s serves OpenShift Route objects.

  %[1]s run                     serve the cluster this pod runs in (also without "run")
  %[1]s run --kubeconfig FILE   serve a cluster from outside
  %[1]s run --manifests DIR     serve a folder of manifests
  %[1]s demo                    router, examples and small backends in one process
  %[1]s validate DIR|FILE...    check manifests without serving them
  %[1]s explain URL             say what would become of a request, and why; see docs/explain.md
  %[1]s version                 print the version
  %[1]s help                    print this text

Flags of run; demo and validate take those that make sense there. A flag wins
over the environment variable in brackets; an empty variable is the same as an
unset one. TIME is a whole number with us, ms, s, m, h or d.

`, program)
	option.Help(w, settings(&options{}))
}

// release is the version that the makefile gives with the linker's -X main.release,
// as git describe names it; empty when go build was run without it.
var release = ""

// version names the build: release, or module version and the revision it was built
// from, and Go; with the tag openssl its library, too.
func version() string {
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
