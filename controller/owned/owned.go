// Package owned reads, applies and deletes single objects that the program keeps for objects of others: workloads, Services, roles. It knows objects by their places
// and as JSON, so that one client does for all groups of the API.
package owned

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// patience bounds one request.
const patience = 15 * time.Second

// Resource is a kind of objects.
type Resource struct {
	API    string // the path of its group and version, such as /apis/apps/v1
	Plural string // as paths have it
	Kind   string // as messages name it
}

// The resources that are kept, and those that they are made by.
var (
	Services        = Resource{"/api/v1", "services", "Service"}
	ServiceAccounts = Resource{"/api/v1", "serviceaccounts", "ServiceAccount"}
	Pods            = Resource{"/api/v1", "pods", "Pod"}
	Slices          = Resource{"/apis/discovery.k8s.io/v1", "endpointslices", "EndpointSlice"}
	PodTemplates    = Resource{"/api/v1", "podtemplates", "PodTemplate"}
	Deployments     = Resource{"/apis/apps/v1", "deployments", "Deployment"}
	DaemonSets      = Resource{"/apis/apps/v1", "daemonsets", "DaemonSet"}
	Roles           = Resource{"/apis/rbac.authorization.k8s.io/v1", "roles", "Role"}
	RoleBindings    = Resource{"/apis/rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding"}
	ClusterBindings = Resource{"/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding"}
)

// Object names an object. It is comparable.
type Object struct {
	Resource
	Namespace string // "" = it is in none
	Name      string
}

// String names the object for people.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Client asks an API server about objects. Any goroutine may call its methods.
type Client struct {
	API     rest.Interface // of any group
	Manager string         // who writes, for the API server
}

// at has a request be about an object.
func (o Object) at(r *rest.Request) *rest.Request {
	segments := []string{o.API, o.Plural, o.Name}
	if o.Namespace != "" {
		segments = []string{o.API, "namespaces", o.Namespace, o.Plural, o.Name}
	}
	return r.AbsPath(segments...)
}

// Read reads an object into what JSON may be read into. The error of one that is not there is that of apierrors.IsNotFound.
func (c *Client) Read(ctx context.Context, o Object, into any) error {
	return answer(ctx, o.at(c.API.Get()).SetHeader("Accept", "application/json"), into)
}

// Metadata reads what an object says of itself; nil if it is not there.
func (c *Client) Metadata(ctx context.Context, o Object) (*metav1.ObjectMeta, error) {
	object := new(metav1.PartialObjectMetadata)
	err := answer(ctx, o.at(c.API.Get()).SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"), object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return &object.ObjectMeta, err
}

// List returns which objects of a resource a label selector selects, in all namespaces, with their labels.
func (c *Client) List(ctx context.Context, r Resource, selector string) (map[Object]map[string]string, error) {
	list := new(metav1.PartialObjectMetadataList)
	q := c.API.Get().AbsPath(r.API, r.Plural).Param("labelSelector", selector).SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	if err := answer(ctx, q, list); err != nil {
		return nil, err
	}
	objects := make(map[Object]map[string]string, len(list.Items))
	for i := range list.Items {
		m := &list.Items[i].ObjectMeta
		objects[Object{r, m.Namespace, m.Name}] = m.Labels
	}
	return objects, nil
}

// Apply makes an object what body says, no matter which manager set the same fields before; others stay. into, unless it is nil, gets what it is then.
func (c *Client) Apply(ctx context.Context, o Object, body []byte, into any) error {
	return answer(ctx, o.at(c.API.Patch(types.ApplyPatchType)).Param("fieldManager", c.Manager).Param("force", "true").SetHeader("Accept", "application/json").Body(body), into)
}

// Delete deletes an object if it has that UID; "" = any. One that is not there is deleted.
func (c *Client) Delete(ctx context.Context, o Object, uid types.UID) error {
	options := metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}}
	background := metav1.DeletePropagationBackground
	options.PropagationPolicy = &background
	if uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	body, err := json.Marshal(&options)
	if err != nil {
		return fmt.Errorf("BUG: cannot write how %s is deleted: %w", o, err)
	}
	err = answer(ctx, o.at(c.API.Delete()).SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(body), nil)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// answer asks, and reads the answer, unless into is nil.
func answer(ctx context.Context, q *rest.Request, into any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result := q.Do(ctx)
	if err := result.Error(); err != nil { // with what the server says, which Raw leaves out
		return err //nolint:wrapcheck // callers tell kinds apart
	}
	text, err := result.Raw()
	if err != nil || into == nil {
		return err //nolint:wrapcheck // as above
	}
	if err := json.Unmarshal(text, into); err != nil {
		return errors.Join(errors.New("cannot read what the API server says"), err)
	}
	return nil
}
