// Package size holds a test of the router in a cluster with ten thousand routes: three replicas as pods, changes while clients ask without
// pause, and faults of the cluster. Without flags it is small and takes less than a minute; make size measures docs/lab/size.md.
package size
