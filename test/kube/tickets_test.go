package kube

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"turnout/test/kube/internal/router"
)

// session is a client's memory of one TLS session. It implements tls.ClientSessionCache.
type session struct{ state *tls.ClientSessionState }

func (s *session) Get(string) (*tls.ClientSessionState, bool)  { return s.state, s.state != nil }
func (s *session) Put(_ string, state *tls.ClientSessionState) { s.state = state }

// visit makes one request on a connection of its own, which resumes s, and leaves in s what the router sent. It reports whether the session was resumed.
func visit(r *router.Router, host string, s *session) (resumed bool, err error) {
	c, err := tls.Dial("tcp", r.IP+":443", &tls.Config{ServerName: host, InsecureSkipVerify: true, ClientSessionCache: s})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return false, err
	}
	if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host); err != nil {
		return false, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return false, err
	}
	if resp.StatusCode != http.StatusOK {
		return false, errors.New(resp.Status)
	}
	return c.ConnectionState().DidResume, resp.Body.Close()
}

// shareTickets makes what deploy/manifests has for sessions that all routers resume, and returns the Secret.
func shareTickets(t *testing.T) *corev1.Secret {
	t.Helper()
	text := must[[]byte](t)(os.ReadFile(filepath.Join("..", "..", "deploy", "manifests", "optional", "ticket-keys.yaml")))
	documents := strings.Split(string(text), "\n---\n")
	if len(documents) != 3 {
		t.Fatalf("%d documents, want a Secret, a Role and a RoleBinding", len(documents))
	}
	secret, role, binding := new(corev1.Secret), new(rbacv1.Role), new(rbacv1.RoleBinding)
	for i, object := range []any{secret, role, binding} {
		if err := yaml.UnmarshalStrict([]byte(documents[i]), object); err != nil {
			t.Fatal(err)
		}
	}
	secret = must[*corev1.Secret](t)(shared.core.CoreV1().Secrets(secret.Namespace).Create(t.Context(), secret, metav1.CreateOptions{}))
	must[*rbacv1.Role](t)(shared.core.RbacV1().Roles(role.Namespace).Create(t.Context(), role, metav1.CreateOptions{}))
	must[*rbacv1.RoleBinding](t)(shared.core.RbacV1().RoleBindings(binding.Namespace).Create(t.Context(), binding, metav1.CreateOptions{}))
	return secret
}

// rotatedSince reports whether the Secret is another one than the last that the watch told.
func rotatedSince(t *testing.T, told *corev1.Secret) bool {
	t.Helper()
	now := must[*corev1.Secret](t)(shared.core.CoreV1().Secrets(told.Namespace).Get(t.Context(), told.Name, metav1.GetOptions{}))
	return now.ResourceVersion != told.ResourceVersion
}

// TestTicketsOfReplicas: sessions of any of three routers are resumed by each, all of them, through two rotations, and each rotation is one write.
func TestTicketsOfReplicas(t *testing.T) {
	secret := shareTickets(t)
	events, err := shared.core.CoreV1().Secrets(secret.Namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + secret.Name, ResourceVersion: secret.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	routers := make([]*router.Router, 3)
	for i := range routers {
		routers[i] = newRouter(t, "default", "--tls-ticket-keys-secret", secret.Namespace+"/"+secret.Name, "--tls-ticket-rotation", "10s")
	}
	n := newNamespace(t, "a", nil)
	n.service("web", pod1)
	const host = "tickets.test"
	n.create(edge(newRoute("r", host), ""))
	for _, r := range routers {
		serves(t, r, "https://"+host+"/", at(pod1))
	}
	writes, visits := 0, 0
	older := new(session)
	if _, err := visit(routers[0], host, older); err != nil {
		t.Fatal(err)
	}
	end := time.NewTimer(2 * patience)
	defer end.Stop()
	for writes < 3 { // it is filled, and rotated twice
		fresh := new(session)
		if _, err := visit(routers[visits%3], host, fresh); err != nil {
			t.Fatal(err)
		}
		for i, s := range []*session{fresh, older} {
			kept := *s
			resumed, err := visit(routers[(visits+1+i)%3], host, &kept)
			visits++
			switch {
			case err == nil && resumed:
			case err == nil && s == older && rotatedSince(t, secret): // the routers know it before this test does
			default:
				t.Fatalf("after %d visits and %d writes a session was not resumed by another router: %v", visits, writes, err)
			}
		}
		select {
		case e := <-events.ResultChan():
			writes++
			secret = e.Object.(*corev1.Secret)
			older = fresh // a ticket of just before or after the change, good until the next
		case <-end.C:
			t.Fatalf("%d writes", writes)
		default:
		}
	}
	t.Logf("%d visits, all resumed; %d writes", visits, writes)
}
