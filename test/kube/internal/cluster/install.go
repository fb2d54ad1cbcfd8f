package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// installRoutes makes the Route API, and waits until it is served.
func (c *Cluster) installRoutes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	text, err := os.ReadFile(c.cfg.CRD)
	if err != nil {
		return fmt.Errorf("cannot read the Route CRD: %w", err)
	}
	crd := new(apiextensionsv1.CustomResourceDefinition)
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		return fmt.Errorf("cannot parse %s: %w", c.cfg.CRD, err)
	}
	clients, err := apiextensions.NewForConfig(c.Admin)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	definitions := clients.ApiextensionsV1().CustomResourceDefinitions()
	if _, err = definitions.Create(ctx, crd, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot create the Route API: %w", err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		// Established is said some time before the storage is there.
		err := clients.ApiextensionsV1().RESTClient().Get().AbsPath("/apis/route.openshift.io/v1/routes").Do(ctx).Error()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the Route API is not served: %w", ctx.Err()), err)
		}
	}
}

// Token returns a token of a service account, valid for an hour.
func (c *Cluster) Token(ctx context.Context, namespace, account string) (string, error) {
	clients, err := kubernetes.NewForConfig(c.Admin)
	if err != nil {
		return "", fmt.Errorf("cannot make a client: %w", err)
	}
	request, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot get a token of %s/%s: %w", namespace, account, err)
	}
	return request.Status.Token, nil
}

// Kubeconfig writes a configuration that uses a token, and returns its path.
func (c *Cluster) Kubeconfig(name, token string) (string, error) {
	config := api.NewConfig()
	config.Clusters["test"] = &api.Cluster{Server: c.Admin.Host, CertificateAuthorityData: []byte(c.CA.Cert)}
	config.AuthInfos["router"] = &api.AuthInfo{Token: token}
	config.Contexts["test"] = &api.Context{Cluster: "test", AuthInfo: "router"}
	config.CurrentContext = "test"
	path := filepath.Join(c.cfg.Dir, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("cannot write a kubeconfig: %w", err)
	}
	return path, nil
}
