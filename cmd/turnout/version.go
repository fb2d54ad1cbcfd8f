package main

import "turnout/internal/buildinfo"

// release is the version that the makefile gives with the linker's -X main.release,
// as git describe names it; empty when go build was run without it.
var release = ""

// version names the build.
func version() string { return buildinfo.Version(release) }
