// Package runtime runs containers by runc, as a container runtime does for a kubelet.
//
// A Container says what to run and in which surroundings; Start makes it a bundle of the OCI
// runtime specification and has runc start it. runc leaves when the container runs, and the
// container's first process becomes a child of this process, which is a subreaper for that:
// its end, exit code and signal are seen without polling. Containers die with Remove, not by
// themselves when this process ends; in a sandbox the process namespace sees to that.
package runtime
