// Package fleet keeps the pods of Routers: a Deployment or DaemonSet for each Router that
// asks for one, made of a PodTemplate, owned by the Router, scaled and rolled with it.
//
//	Router (replicas, podTemplate, workload) ┐
//	                                         ├─► wanted ─► server-side apply ─► Deployment or DaemonSet
//	PodTemplate ─────────────────────────────┘                                      │
//	                       condition Deployed of the Router ◄───────────────────────┘
//
// What others set in a workload and a PodTemplate does not say stays as it is.
package fleet
