package main

import (
	"flag"

	"turnout/bench/report"
	"turnout/bench/site"
)

// documents makes the charts and tables of documents from a file of results.
func documents(f *flag.FlagSet) func(*site.T) {
	root := f.String("root", ".", "folder of the module")
	file := f.String("results", "", "file of results (the newest of all cases in "+report.Folder+" when empty)")
	return func(t *site.T) {
		if *file == "" {
			*file = site.Must(report.Latest(*root))
		}
		results := site.Must(report.Read(*file))
		site.Check(results.Print(t.Out))
		site.Check(results.Update(*root))
	}
}
