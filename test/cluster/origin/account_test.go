package origin

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// openNamespace lets the routers' namespace have pods on the host network, which it does not allow as it is shipped.
func openNamespace(ctx context.Context) error {
	patch := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`)
	_, err := shared.core.CoreV1().Namespaces().Patch(ctx, routerNamespace, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
