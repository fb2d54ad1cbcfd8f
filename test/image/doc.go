// Package image holds the test of the container image: make test-image builds it and
// runs it as a cluster would, non-root on a read-only root file system. The test has
// the build tag image, because it needs root, buildah, podman and runc.
package image
