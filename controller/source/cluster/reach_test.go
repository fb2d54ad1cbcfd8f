package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// kubeconfigOf writes a file with one cluster, user and context of a name.
func kubeconfigOf(t *testing.T, name, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	text := `apiVersion: v1
kind: Config
clusters: [{name: ` + name + `, cluster: {server: "` + server + `", tls-server-name: ` + name + `.test}}]
users: [{name: ` + name + `, user: {token: token-of-` + name + `}}]
contexts: [{name: ` + name + `, context: {cluster: ` + name + `, user: ` + name + `}}]
current-context: ` + name + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReach: flags win over files, of the files of KUBECONFIG the first, and the address of last resort over nothing.
func TestReach(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	a, b := kubeconfigOf(t, "a", "https://a.test:1"), kubeconfigOf(t, "b", "https://b.test:2")
	missing, some := filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "some")
	if err := os.WriteFile(some, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name                           string
		reach                          Reach
		host, token, serverName, other string
	}{
		{"a file", Reach{Kubeconfig: a}, "https://a.test:1", "token-of-a", "a.test", ""},
		{"a file wins over KUBECONFIG", Reach{Kubeconfig: b, Files: []string{a}}, "https://b.test:2", "token-of-b", "b.test", ""},
		{"KUBECONFIG: the first file's context", Reach{Files: []string{missing, b, a}}, "https://b.test:2", "token-of-b", "b.test", ""},
		{"--context", Reach{Files: []string{b, a}, Flags: Flags{Context: "a"}}, "https://a.test:1", "token-of-a", "a.test", ""},
		{"--cluster and --user", Reach{Files: []string{b, a}, Flags: Flags{Cluster: "a", User: "b"}}, "https://a.test:1", "token-of-b", "a.test", ""},
		{"--server and --token", Reach{Files: []string{a}, Flags: Flags{Server: "https://c.test", Token: "mine"}}, "https://c.test", "mine", "", ""},
		{"--tls-server-name", Reach{Files: []string{a}, Flags: Flags{ServerName: "other"}}, "https://a.test:1", "token-of-a", "other", ""},
		{"nothing but --server", Reach{Flags: Flags{Server: "https://c.test", Token: "mine", Context: ""}}, "https://c.test", "mine", "", ""},
		{"KUBERNETES_MASTER", Reach{Master: "https://m.test"}, "https://m.test", "", "", ""},
		{"KUBERNETES_MASTER and a file", Reach{Master: "https://m.test", Kubeconfig: a}, "https://a.test:1", "token-of-a", "a.test", ""},
		{"files that are not there, KUBERNETES_MASTER", Reach{Master: "https://m.test", Files: []string{missing}}, "https://m.test", "", "", ""},
		{"--as", Reach{Kubeconfig: a, Flags: Flags{As: "system:admin", AsUID: "7"}, AsGroups: []string{"g", "h"}}, "https://a.test:1", "token-of-a", "a.test", "as system:admin 7 g,h"},
		{"--insecure-skip-tls-verify", Reach{Kubeconfig: a, Flags: Flags{InsecureSkipVerify: true}}, "https://a.test:1", "token-of-a", "a.test", "insecure"},
		{"certificates", Reach{Kubeconfig: a, Flags: Flags{CertificateAuthority: some, ClientCertificate: some, ClientKey: some}}, "https://a.test:1", "token-of-a", "a.test", some + " " + some + " " + some},
		{"--request-timeout", Reach{Kubeconfig: a, Flags: Flags{Timeout: "90"}}, "https://a.test:1", "token-of-a", "a.test", "1m30s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, err := c.reach.config()
			if err != nil {
				t.Fatal(err)
			}
			var other []string
			if config.Impersonate.UserName != "" {
				other = append(other, "as", config.Impersonate.UserName, config.Impersonate.UID, strings.Join(config.Impersonate.Groups, ","))
			}
			if config.Insecure {
				other = append(other, "insecure")
			}
			if config.Timeout != 0 {
				other = append(other, config.Timeout.Round(time.Second).String())
			}
			for _, file := range []string{config.CAFile, config.CertFile, config.KeyFile} {
				if file != "" {
					other = append(other, file)
				}
			}
			got := []string{config.Host, config.BearerToken, config.ServerName, strings.Join(other, " ")}
			if want := []string{c.host, c.token, c.serverName, c.other}; !slices.Equal(got, want) {
				t.Errorf("got %q\nwant %q", got, want)
			}
		})
	}
}

func TestReachThatLeadsNowhere(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	a := kubeconfigOf(t, "a", "https://a.test:1")
	for want, r := range map[string]Reach{
		"cannot use kubeconfig " + a + `: context "b" does not exist`:    {Kubeconfig: a, Flags: Flags{Context: "b"}},
		`cannot use the files of KUBECONFIG, ["/none"]: invalid configu`: {Files: []string{"/none"}},
		`cannot tell from the flags how to reach a cluster: `:            {Flags: Flags{User: "nobody"}},
		"cannot reach a cluster: no kubeconfig given and not in a pod":   {},
	} {
		if _, err := r.config(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// TestKubectlOfSomebody: the file of kubectl in the home directory counts where a flag asks for something of it, and not by itself.
func TestKubectlOfSomebody(t *testing.T) {
	if r := (Reach{Master: "m"}); len(r.files().Precedence) != 0 {
		t.Errorf("reads %q without being asked", r.files().Precedence)
	}
	if r := (Reach{Flags: Flags{Context: "prod"}}); len(r.files().Precedence) != 1 || !strings.HasSuffix(r.files().Precedence[0], "/.kube/config") {
		t.Errorf("reads %q", r.files().Precedence)
	}
}

func TestWordsOfKubectl(t *testing.T) {
	for _, good := range []string{"0", "30", "1m30s"} {
		if got, err := ParseRequestTimeout(good); err != nil || got != good {
			t.Errorf("%q: %q %v", good, got, err)
		}
	}
	if _, err := ParseRequestTimeout("soon"); err == nil || !strings.HasPrefix(err.Error(), "allowed: ") {
		t.Error(err)
	}
	for in, want := range map[string]string{"a": "a", "ns/a": "a", "Namespaces/a": "a"} {
		if got, err := ParseNamespace(in); err != nil || got != want {
			t.Errorf("%q: %q %v", in, got, err)
		}
	}
}
