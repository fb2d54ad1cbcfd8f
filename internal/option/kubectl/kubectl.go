// Package kubectl is the flags and variables that say how a cluster is reached, as kubectl and the HAProxy router have them.
package kubectl

import (
	"path/filepath"

	"turnout/controller/source/cluster"
	"turnout/internal/option"
)

// Group is what the help lists them under.
const Group = "Reaching a cluster"

// Settings are bound to r, whose zero value is what counts without any.
func Settings(r *cluster.Reach) []option.Option {
	text := func(to *string, flag, value, help string) option.Option {
		return option.Option{Flag: flag, Value: value, Set: option.Into(to, option.ParseText), Help: help}
	}
	return []option.Option{
		text(&r.Kubeconfig, "kubeconfig", "FILE", "how to reach the cluster to serve; without it and --manifests the files of KUBECONFIG, else the cluster this pod runs in"),
		text(&r.Kubeconfig, "config", "FILE", "another name of --kubeconfig"),
		{Flag: "kubeconfig-files", Env: "KUBECONFIG", Value: "LIST", Set: option.Into(&r.Files, parseFiles),
			Help: "such files, separated as in PATH and merged as kubectl does; not read with --kubeconfig"},
		text(&r.Context, "context", "NAME", "the context of those files that counts"),
		text(&r.Cluster, "cluster", "NAME", "the cluster of those files that counts"),
		text(&r.User, "user", "NAME", "the user of those files that counts"),
		text(&r.Server, "server", "URL", "the API server"),
		{Flag: "kubernetes-master", Env: "KUBERNETES_MASTER", Value: "URL", Set: option.Into(&r.Master, option.ParseText),
			Help: "the API server where neither --server nor a file has one"},
		text(&r.ServerName, "tls-server-name", "NAME", "the name that the API server's certificate must have, if it is not its host"),
		text(&r.CertificateAuthority, "certificate-authority", "FILE", "authorities that the API server is verified against"),
		{Flag: "insecure-skip-tls-verify", IsBool: true, Set: option.Into(&r.InsecureSkipVerify, option.ParseBool),
			Help: "do not verify the API server: an attacker on the path reads the token and decides which routes there are"},
		text(&r.Proxy, "proxy-url", "URL", "the proxy on the way to the API server"),
		text(&r.ClientCertificate, "client-certificate", "FILE", "certificate that is shown to the API server"),
		text(&r.ClientKey, "client-key", "FILE", "the key of that certificate"),
		{Flag: "token", Value: "TEXT", Secret: true, Set: option.Into(&r.Token, option.ParseText),
			Help: "bearer token for the API server; everybody on the machine can read it in the list of processes"},
		text(&r.As, "as", "NAME", "the user in whose name the API server is asked"),
		text(&r.AsUID, "as-uid", "UID", "the UID of that user"),
		{Flag: "as-group", Value: "NAME", Repeats: true, Set: func(s string) error {
			r.AsGroups = append(r.AsGroups, s)
			return nil
		}, Help: "a group of that user; may be given several times"},
		{Flag: "request-timeout", Value: "DURATION", Set: option.Into(&r.Timeout, cluster.ParseRequestTimeout),
			Help: "of every request to the API server, those that watch too; 0, the default, means none"},
		{Flag: "disable-compression", IsBool: true, Set: option.Into(new(bool), option.ParseBool),
			Help: "have the API server not compress its answers, which is so anyway"},
	}
}

// parseFiles reads a list of files as kubectl reads KUBECONFIG.
func parseFiles(s string) ([]string, error) {
	var files []string
	for _, file := range filepath.SplitList(s) {
		if file != "" {
			files = append(files, file)
		}
	}
	return files, nil
}
