// Package site is what a measuring command measures: a router in a process of its own, on ports of loopback that the system
// chooses, before backends in the command's own process.
//
//	apart, err := site.Apart()                   // each on a core of its own
//	ahead := site.RealTime()                        // before those who attack it, which have LowPriority
//	pods, err := site.ServeHTTP(handler)         // or ServeConns
//	router, err := site.Start(ctx, site.Config{
//		Program: "bin/turnout", Alone: apart,
//		Manifests: route + site.Endpoints("bench", "service", pods.Port()),
//	})
//	before, err := router.CPU()                  // and Resident, Descriptors, Metric
//
// A Process is any other child with the same care: it ends with this process, and the end of what it said is kept.
package site
