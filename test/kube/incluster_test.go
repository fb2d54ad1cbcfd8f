package kube

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"turnout/test/kube/internal/router"
)

// TestInCluster: without a kubeconfig the router finds the API server as every pod does.
func TestInCluster(t *testing.T) {
	const dir = "/var/run/secrets/kubernetes.io/serviceaccount" // in the memory of the sandbox
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	token := must[string](t)(shared.Token(t.Context(), routerNamespace, routerAccount))
	for name, text := range map[string]string{"token": token, "ca.crt": shared.CA.Cert, "namespace": routerNamespace} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	api := must[*url.URL](t)(url.Parse(shared.Admin.Host))
	r := router.Start(t, router.Config{
		Binary: shared.binary, IP: nextIP(), Args: []string{"--name", "default"},
		Env: []string{"KUBERNETES_SERVICE_HOST=" + api.Hostname(), "KUBERNETES_SERVICE_PORT=" + api.Port()},
	})
	r.WaitReady(t)
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	n.create(newRoute("r", "incluster.test"))
	n.says("r", "default", "incluster.test True")
	serves(t, r, "http://incluster.test/", at(pod1))
}
