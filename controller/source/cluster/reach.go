package cluster

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Reach is how an API server is reached, in the words of kubectl. The zero value is the cluster of this pod.
type Reach struct {
	Kubeconfig string   // the only file that is read, which must exist; "" = Files
	Files      []string // those of KUBECONFIG: of the ones that exist, the first that sets a value wins
	Master     string   // URL of the API server where neither a file nor Server has one; "" = none
	Flags
	AsGroups []string // groups of Flags.As
}

// Flags win over what files say. The zero value leaves everything to them.
type Flags struct {
	Context, Cluster, User       string // names of entries of the files
	Server                       string // URL of the API server
	ServerName                   string // the name that its certificate must have
	Proxy                        string // URL of the proxy on the way there
	CertificateAuthority         string // file
	InsecureSkipVerify           bool   // the certificate of the API server is not verified
	ClientCertificate, ClientKey string // files
	Token                        string // bearer token
	As, AsUID                    string // whom requests are made for
	Timeout                      string // of every request, watches too: 30s; 0 = none
}

// Asked reports whether more than the environment says how a cluster is reached.
func (r *Reach) Asked() bool { return r.Kubeconfig != "" || r.Flags != Flags{} }

// Known reports whether anything says how a cluster is reached.
func (r *Reach) Known() bool { return r.Asked() || len(r.Files) > 0 || r.Master != "" }

// ParseRequestTimeout reads a time as kubectl does: a Go duration or a whole number of seconds.
func ParseRequestTimeout(s string) (string, error) {
	if _, err := clientcmd.ParseTimeout(s); err != nil {
		return "", errors.New("allowed: a whole number of seconds, or a duration such as 1m30s; 0 means none")
	}
	return s, nil
}

// ParseNamespace reads the name of a namespace, as kubectl does with or without ns/ before it.
func ParseNamespace(s string) (string, error) { return clientcmd.RemoveNamespacesPrefix(s) }

// config returns how the API server is reached: as r says, or from within a pod.
func (r *Reach) config() (*rest.Config, error) {
	if !r.Known() {
		return podConfig()
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(r.files(), r.overrides()).ClientConfig()
	switch {
	case err == nil:
		return config, nil
	case r.Kubeconfig != "":
		return nil, fmt.Errorf("cannot use kubeconfig %s: %w", r.Kubeconfig, err)
	case len(r.Files) > 0:
		return nil, fmt.Errorf("cannot use the files of KUBECONFIG, %q: %w", r.Files, err)
	}
	return nil, fmt.Errorf("cannot tell from the flags how to reach a cluster: %w", err)
}

// API returns how the API server is reached, for clients besides the Feeder. Each request is sent at once: who asks bounds how many there are.
func (cfg *Config) API() (*rest.Config, error) {
	config, err := cfg.Reach.config()
	if err != nil {
		return nil, err
	}
	return complete(config, cmp.Or(cfg.UserAgent, "turnout")), nil
}

// podConfig returns how the API server is reached from within a pod.
func podConfig() (*rest.Config, error) {
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, errors.New("cannot reach a cluster: no kubeconfig given and not in a pod")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot reach the cluster of this pod: %w", err)
	}
	return config, nil
}

// files are where the configuration is read. The file in the home directory is read where flags want something of kubectl's
// configuration, and not otherwise: a router started without them is not to serve the cluster that somebody used last.
func (r *Reach) files() *clientcmd.ClientConfigLoadingRules {
	rules := &clientcmd.ClientConfigLoadingRules{
		ExplicitPath: r.Kubeconfig, Precedence: r.Files,
		DefaultClientConfig: clientcmd.NewDefaultClientConfig(api.Config{}, r.defaults()),
	}
	if len(r.Files) == 0 && (r.Flags != Flags{}) {
		rules.Precedence = []string{clientcmd.RecommendedHomeFile}
	}
	return rules
}

func (r *Reach) defaults() *clientcmd.ConfigOverrides {
	return &clientcmd.ConfigOverrides{ClusterDefaults: api.Cluster{Server: r.Master}}
}

// overrides is what wins over files.
func (r *Reach) overrides() *clientcmd.ConfigOverrides {
	o := r.defaults()
	o.CurrentContext, o.Context.Cluster, o.Context.AuthInfo, o.Timeout = r.Context, r.Cluster, r.User, r.Timeout
	o.ClusterInfo = api.Cluster{
		Server: r.Server, TLSServerName: r.ServerName, ProxyURL: r.Proxy, CertificateAuthority: r.CertificateAuthority, InsecureSkipTLSVerify: r.InsecureSkipVerify,
	}
	o.AuthInfo = api.AuthInfo{
		ClientCertificate: r.ClientCertificate, ClientKey: r.ClientKey, Token: r.Token, Impersonate: r.As, ImpersonateUID: r.AsUID, ImpersonateGroups: r.AsGroups,
	}
	return o
}
