// Package operator holds the tests of the two roads on which Turnout takes the place of the
// router of OpenShift's ingress operator, with the exact texts of its manifests and of
// ours, in a cluster of real control plane and stand-in nodes:
//
//   - the operator's unmodified Deployment with the image tag for it, in the layout of
//     releases before and after the sidecar (testdata);
//   - a Deployment of our own (deploy/manifests) beside the operator, on the host network,
//     and behind the operator's Services.
package operator
