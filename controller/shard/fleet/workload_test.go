package fleet

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/shard/api"
)

func aTemplate() *corev1.PodTemplate {
	return &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t"}, Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "log"}, {Name: "router", Env: []corev1.EnvVar{{Name: "TURNOUT_ROUTER", Value: "other"}, {Name: "POD_IP", Value: "192.0.2.1"}}},
		}},
	}}
}

// TestWanted: the pods are those of the template, with what a replica has to know; equal wishes have equal hashes.
func TestWanted(t *testing.T) {
	three := int32(3)
	r := &api.Router{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}, Spec: api.RouterSpec{Replicas: &three}}
	template := aTemplate()
	body, hash, err := wanted(r, template)
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		Kind     string            `json:"kind"`
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			Replicas *int32                 `json:"replicas"`
			Selector metav1.LabelSelector   `json:"selector"`
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(body, &o); err != nil {
		t.Fatal(err)
	}
	if o.Kind != "Deployment" || o.Metadata.Name != "router-a" || o.Metadata.Namespace != "ns" || o.Metadata.OwnerReferences[0].UID != "u" || *o.Spec.Replicas != 3 ||
		o.Metadata.Annotations[hashAnnotation] != hash || o.Spec.Selector.MatchLabels[RouterLabel] != "a" {
		t.Errorf("%s", body)
	}
	if labels := o.Spec.Template.Labels; labels["app"] != "x" || labels[RouterLabel] != "a" {
		t.Errorf("labels of pods: %v", labels)
	}
	env := make(map[string]string)
	for _, v := range o.Spec.Template.Spec.Containers[1].Env {
		if env[v.Name] = v.Value; v.ValueFrom != nil {
			env[v.Name] = v.ValueFrom.FieldRef.FieldPath
		}
	}
	if env["TURNOUT_ROUTER"] != "a" || env["POD_IP"] != "192.0.2.1" || env["POD_NAME"] != "metadata.name" || len(o.Spec.Template.Spec.Containers[0].Env) != 0 {
		t.Errorf("variables %v", env)
	}
	if template.Template.Labels[RouterLabel] != "" || template.Template.Spec.Containers[1].Env[0].Value != "other" {
		t.Error("the template was changed")
	}
	if _, again, _ := wanted(r, aTemplate()); again != hash {
		t.Error("the same has another hash")
	}
	two := int32(2)
	r.Spec.Replicas = &two
	if _, other, _ := wanted(r, template); other == hash {
		t.Error("another number of replicas has the same hash")
	}
	r.Spec.Workload = api.WorkloadDaemonSet
	if body, _, _ = wanted(r, template); json.Unmarshal(body, &o) != nil || o.Kind != "DaemonSet" {
		t.Errorf("%s", body)
	}
	if _, _, err = wanted(r, &corev1.PodTemplate{}); err == nil {
		t.Error("a template without containers is accepted")
	}
}

// TestJudge: pods are ready when all are, and are of the newest template.
func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		kind api.Workload
		want string
	}{
		"ready":          {`{"metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":2,"readyReplicas":2,"updatedReplicas":2}}`, api.WorkloadDeployment, "Ready"},
		"not seen yet":   {`{"metadata":{"generation":3},"spec":{"replicas":2},"status":{"observedGeneration":2,"readyReplicas":2,"updatedReplicas":2}}`, api.WorkloadDeployment, "Progressing"},
		"one missing":    {`{"metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":2,"readyReplicas":1,"updatedReplicas":2}}`, api.WorkloadDeployment, "Progressing"},
		"rolling":        {`{"metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":2,"readyReplicas":2,"updatedReplicas":1}}`, api.WorkloadDeployment, "Progressing"},
		"daemons":        {`{"metadata":{"generation":2},"status":{"observedGeneration":2,"desiredNumberScheduled":3,"numberReady":3,"updatedNumberScheduled":3}}`, api.WorkloadDaemonSet, "Ready"},
		"daemons, later": {`{"metadata":{"generation":2},"status":{"observedGeneration":2,"desiredNumberScheduled":3,"numberReady":2,"updatedNumberScheduled":3}}`, api.WorkloadDaemonSet, "Progressing"},
	} {
		var w workload
		if err := json.Unmarshal([]byte(c.text), &w); err != nil {
			t.Fatal(err)
		}
		var condition metav1.Condition
		if judge(&w, c.kind, &condition); condition.Reason != c.want || (condition.Status == metav1.ConditionTrue) != (c.want == "Ready") {
			t.Errorf("%s: %+v", name, condition)
		}
	}
}

func TestParseTemplate(t *testing.T) {
	for text, ok := range map[string]bool{"": true, "ns/name": true, "name": false, "/name": false, "ns/": false, "ns/a/b": false, "NS/name": false} {
		if got, err := ParseTemplate(text); (err == nil) != ok || (got != nil) != (ok && text != "") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
