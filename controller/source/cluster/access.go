package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"turnout/controller/source"
)

// defaultAccount is the service account of the HAProxy router.
const defaultAccount = "openshift-ingress:router"

// accountPrefix begins the user names of service accounts.
const accountPrefix = "system:serviceaccount:"

// ParseAccount returns why a text does not name a service account, nil if it does. The
// form is NAMESPACE:NAME.
func ParseAccount(text string) error {
	namespace, name, ok := strings.Cut(text, ":")
	if !ok || namespace == "" || name == "" || strings.ContainsAny(name, ":/ ") || strings.ContainsAny(namespace, "/ ") {
		return errors.New("allowed: NAMESPACE:NAME of a service account")
	}
	return nil
}

// accountOf returns the service account whose credentials config holds, the one of the
// HAProxy router if it holds none.
func accountOf(config *rest.Config) string {
	token := config.BearerToken
	if token == "" && config.BearerTokenFile != "" {
		content, err := os.ReadFile(config.BearerTokenFile)
		if err == nil {
			token = strings.TrimSpace(string(content))
		}
	}
	// The token is only asked whose it is; that it is valid is the API server's concern.
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return defaultAccount
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return defaultAccount
	}
	var claims struct {
		Subject string `json:"sub"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return defaultAccount
	}
	account, ok := strings.CutPrefix(claims.Subject, accountPrefix)
	if !ok || ParseAccount(account) != nil {
		return defaultAccount
	}
	return account
}

// reviewer asks whether a service account may read secrets.
type reviewer struct {
	client rest.Interface // of authorization.k8s.io
	user   string
	groups []string
}

// newReviewer returns a reviewer of an account in the form of ParseAccount.
func newReviewer(client rest.Interface, account string) *reviewer {
	namespace, _, _ := strings.Cut(account, ":")
	return &reviewer{
		client: client, user: accountPrefix + account,
		groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
}

// denied returns which of the verbs get, watch and list the account may not use on a
// secret. The error says why that could not be found out.
func (r *reviewer) denied(ctx context.Context, key source.Key) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var verbs []string
	for _, verb := range []string{"get", "watch", "list"} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: r.user, Groups: r.groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: key.Namespace, Name: key.Name, Verb: verb, Resource: "secrets", Version: "v1",
			},
		}}
		answer := new(authorizationv1.SubjectAccessReview)
		err := r.client.Post().Resource("subjectaccessreviews").MaxRetries(0).Body(review).Do(ctx).Into(answer)
		if err != nil {
			return nil, fmt.Errorf("cannot ask for the permissions of %s: %w", r.user, err)
		}
		if !answer.Status.Allowed {
			verbs = append(verbs, verb)
		}
	}
	return verbs, nil
}

// secretClient asks an API server about single secrets.
type secretClient struct {
	*reviewer
	clients *clients
}

// granted is an API that is asked for secrets which somebody grants one by one: a router that may not read one finds out when it reads.
type granted struct{ secretAPI }

func (granted) denied(context.Context, source.Key) ([]string, error) { return nil, nil }

// one returns the secrets of a name.
func (c *secretClient) one(key source.Key) *resource {
	return &resource{
		client: c.clients.core, parameters: c.clients.parameters, plural: "secrets", namespace: key.Namespace,
		fields: fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String(),
		list:   func() runtime.Object { return new(corev1.SecretList) },
	}
}

func (c *secretClient) read(ctx context.Context, key source.Key) (*corev1.Secret, string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	object, err := c.one(key).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, "", err
	}
	list, ok := object.(*corev1.SecretList)
	if !ok {
		return nil, "", fmt.Errorf("BUG: a list of secrets is %T", object)
	}
	for i := range list.Items {
		if secret := &list.Items[i]; secret.Name == key.Name {
			trim(secret, false)
			return secret, list.ResourceVersion, nil
		}
	}
	return nil, list.ResourceVersion, nil
}

func (c *secretClient) watch(ctx context.Context, key source.Key, version string) (watch.Interface, error) {
	seconds := int64(300 + rand.N(300))
	ctx, cancel := context.WithCancel(ctx)
	silence := time.AfterFunc(requestTimeout, cancel)
	w, err := c.one(key).Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	silence.Stop()
	if err != nil {
		cancel()
		return nil, err
	}
	return &boundWatch{w, cancel}, nil
}

// boundWatch is a watch with a context of its own.
type boundWatch struct {
	watch.Interface
	cancel context.CancelFunc
}

func (w *boundWatch) Stop() {
	w.Interface.Stop()
	w.cancel()
}

// requestTimeout bounds requests that are answered at once.
const requestTimeout = 15 * time.Second
