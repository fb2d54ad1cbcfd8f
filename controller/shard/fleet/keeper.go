package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"turnout/controller/owned"
	"turnout/controller/shard/api"
)

// manager is who writes, for the API server.
const manager = "turnout-fleet"

// patience bounds one request.
const patience = 15 * time.Second

// Config is what a Keeper needs. All but Default and Log are required.
type Config struct {
	API       rest.Interface // of any group
	Shards    *api.Client
	Namespace string                    // where pods may be of Routers that ask for none any more: that of the scheduler
	Default   *api.PodTemplateReference // of Routers with replicas that name none; nil: there is none
	Log       *zap.Logger               // nil: no logs
}

// Keeper keeps the pods of Routers. It is made by New, and used by one goroutine.
type Keeper struct {
	cfg  Config
	api  owned.Client
	said map[string]string // condition of each Router, as written last
	kept map[string]string // namespace of the pods of each Router that had some when this process looked last
}

// New returns a Keeper that has kept nothing yet.
func New(cfg Config) *Keeper {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	return &Keeper{cfg: cfg, api: owned.Client{API: cfg.API, Manager: manager}, said: make(map[string]string), kept: make(map[string]string)}
}

// workload is what is read of a Deployment or DaemonSet.
type workload struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Replicas *int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64 `json:"observedGeneration"`
		Replicas           int32 `json:"replicas"`
		ReadyReplicas      int32 `json:"readyReplicas"`
		UpdatedReplicas    int32 `json:"updatedReplicas"`
		Desired            int32 `json:"desiredNumberScheduled"` // of a DaemonSet, as the two below
		Ready              int32 `json:"numberReady"`
		Updated            int32 `json:"updatedNumberScheduled"`
	} `json:"status"`
}

// Keep makes the pods of a Router what it asks for, and says so in its condition Deployed. What goes wrong is said there and logged, and tried again by
// the next call.
func (k *Keeper) Keep(ctx context.Context, r *api.Router) {
	c := metav1.Condition{Type: api.ConditionDeployed, Status: metav1.ConditionFalse, Reason: "Failed"}
	switch err := k.keep(ctx, r, &c); {
	case ctx.Err() != nil:
		return
	case err != nil:
		c.Message = err.Error()
	case !asks(r):
		if k.said[r.Name] == "" && !hasCondition(r) {
			return
		}
	}
	k.say(ctx, r, c)
}

// Forget forgets a Router that is gone. Its pods go with it: it owns them.
func (k *Keeper) Forget(router string) {
	delete(k.said, router)
	delete(k.kept, router)
}

func hasCondition(r *api.Router) bool {
	for _, c := range r.Status.Conditions {
		if c.Type == api.ConditionDeployed {
			return true
		}
	}
	return false
}

// keep does what Keep says and fills the condition.
func (k *Keeper) keep(ctx context.Context, r *api.Router, c *metav1.Condition) error {
	if !asks(r) {
		if !hasCondition(r) && k.kept[r.Name] == "" {
			return nil
		}
		return errors.Join(k.remove(ctx, r, k.cfg.Namespace, ""), k.remove(ctx, r, k.kept[r.Name], ""))
	}
	at := r.Spec.PodTemplate
	if at == nil {
		at = k.cfg.Default
	}
	if at == nil {
		return errors.New("spec.podTemplate is missing, and the scheduler was given no --pod-template: name a PodTemplate object, or leave spec.replicas out")
	}
	template := new(corev1.PodTemplate)
	if err := k.api.Read(ctx, owned.Object{Resource: owned.PodTemplates, Namespace: at.Namespace, Name: at.Name}, template); err != nil {
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("there is no PodTemplate %s/%s: create it, or change spec.podTemplate", at.Namespace, at.Name)
		}
		return fmt.Errorf("cannot read PodTemplate %s/%s: %w", at.Namespace, at.Name, err)
	}
	template.Namespace = at.Namespace
	k.kept[r.Name] = at.Namespace
	kind := kindOf(r)
	if err := k.remove(ctx, r, at.Namespace, kind); err != nil {
		return err
	}
	w, err := k.apply(ctx, r, template)
	if err != nil {
		return err
	}
	judge(w, kind, c)
	return nil
}

// apply makes the workload what is wanted, unless it is.
func (k *Keeper) apply(ctx context.Context, r *api.Router, template *corev1.PodTemplate) (*workload, error) {
	body, hash, err := wanted(r, template)
	if err != nil {
		return nil, err
	}
	kind := kindOf(r)
	w, err := k.read(ctx, template.Namespace, kind, r.Name)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("cannot read %s %s/%s: %w", kind, template.Namespace, NameOf(r.Name), err)
	case err == nil && !ownedBy(w, r):
		return nil, fmt.Errorf("%s %s/%s is not this Router's: rename it, or the Router", kind, template.Namespace, NameOf(r.Name))
	case err == nil && w.Metadata.Annotations[hashAnnotation] == hash && (w.Spec.Replicas == nil || kind == api.WorkloadDaemonSet || *w.Spec.Replicas == replicas(r)):
		return w, nil
	}
	w = new(workload)
	if err := k.api.Apply(ctx, objectOf(template.Namespace, kind, r.Name), body, w); err != nil {
		return nil, fmt.Errorf("cannot write %s %s/%s: %w", kind, template.Namespace, NameOf(r.Name), err)
	}
	k.cfg.Log.Info("the pods of a router are to be as its PodTemplate says", zap.String("router", r.Name), zap.String(strings.ToLower(string(kind)), template.Namespace+"/"+NameOf(r.Name)))
	return w, nil
}

func ownedBy(w *workload, r *api.Router) bool {
	for _, o := range w.Metadata.OwnerReferences {
		if o.UID == r.UID {
			return true
		}
	}
	return false
}

func (k *Keeper) read(ctx context.Context, namespace string, kind api.Workload, router string) (*workload, error) {
	w := new(workload)
	return w, k.api.Read(ctx, objectOf(namespace, kind, router), w)
}

// objectOf names the workload of a Router.
func objectOf(namespace string, kind api.Workload, router string) owned.Object {
	return owned.Object{Resource: resourceOf[kind], Namespace: namespace, Name: NameOf(router)}
}

// remove deletes the workloads of a Router but for that of a kind.
func (k *Keeper) remove(ctx context.Context, r *api.Router, namespace string, but api.Workload) error {
	for kind := range resourceOf {
		if kind == but || namespace == "" {
			continue
		}
		w, err := k.read(ctx, namespace, kind, r.Name)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || err == nil && !ownedBy(w, r) {
			continue
		}
		if err == nil {
			err = k.api.Delete(ctx, objectOf(namespace, kind, r.Name), w.Metadata.UID)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot delete %s %s/%s: %w", kind, namespace, NameOf(r.Name), err)
		}
	}
	return nil
}

// judge says in a condition how far the pods are.
func judge(w *workload, kind api.Workload, c *metav1.Condition) {
	want, ready, updated := int32(1), w.Status.ReadyReplicas, w.Status.UpdatedReplicas
	if w.Spec.Replicas != nil {
		want = *w.Spec.Replicas
	}
	if kind == api.WorkloadDaemonSet {
		want, ready, updated = w.Status.Desired, w.Status.Ready, w.Status.Updated
	}
	c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Ready", fmt.Sprintf("%s %s/%s has %d of %d pods ready", kind, w.Metadata.Namespace, w.Metadata.Name, ready, want)
	if w.Status.ObservedGeneration != w.Metadata.Generation || ready < want || updated < want {
		c.Status, c.Reason = metav1.ConditionFalse, "Progressing"
	}
}

// say writes a condition, unless it is said already.
func (k *Keeper) say(ctx context.Context, r *api.Router, c metav1.Condition) {
	text := string(c.Status) + c.Reason + c.Message
	conditions := []metav1.Condition{}
	if asks(r) {
		if k.said[r.Name] == text {
			return
		}
		c.LastTransitionTime, c.ObservedGeneration = metav1.Now(), r.Generation
		for _, before := range r.Status.Conditions {
			if before.Type == c.Type && before.Status == c.Status {
				c.LastTransitionTime = before.LastTransitionTime
			}
		}
		conditions = append(conditions, c)
	} else {
		text = ""
	}
	if c.Status == metav1.ConditionFalse && c.Reason == "Failed" && asks(r) {
		k.cfg.Log.Warn("the pods of a router are not as it asks", zap.String("router", r.Name), zap.String("reason", c.Message))
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": api.GroupVersion.String(), "kind": "Router", "metadata": map[string]any{"name": r.Name, "uid": r.UID}, "status": map[string]any{"conditions": conditions},
	})
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	force := true
	if _, err = k.cfg.Shards.Routers().Patch(ctx, r.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: manager, Force: &force}, "status"); err == nil {
		k.said[r.Name] = text
	}
}
