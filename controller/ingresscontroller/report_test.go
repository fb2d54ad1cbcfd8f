package ingresscontroller

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/source"
)

// TestConditionPatch: the condition is written when it says something else, beside those of others, and never in the place of another one.
func TestConditionPatch(t *testing.T) {
	ignored := []Finding{{Field: "spec.a", Text: "why"}, {Text: "other"}}
	const said = `{type: TurnoutFieldsHonored, status: "False", reason: FieldsWithoutEffect, message: "spec.a: why; other", lastTransitionTime: "2026-01-01T00:00:00Z"}`
	for _, c := range []struct {
		name, status string
		findings     []Finding
		want         string
	}{
		{"nothing to say", "{}", nil, ""},
		{"no status", "", ignored, `[{"op":"add","path":"/status","value":{}},{"op":"add","path":"/status/conditions","value":[{"lastTransitionTime":"2026-02-01T00:00:00Z","message":"spec.a: why; other","reason":"FieldsWithoutEffect","status":"False","type":"TurnoutFieldsHonored"}]}]`},
		{"no conditions", "{domain: a}", ignored, `[{"op":"add","path":"/status/conditions","value":[{"last`},
		{"those of others", "{conditions: [{type: Available}]}", ignored, `[{"op":"add","path":"/status/conditions/-","value":{"last`},
		{"it says so", "{conditions: [{type: Available}, " + said + "]}", ignored, ""},
		{"it says another thing", "{conditions: [{type: Available}, " + said + "]}", ignored[:1], `[{"op":"test","path":"/status/conditions/1/type","value":"TurnoutFieldsHonored"},{"op":"replace","path":"/status/conditions/1","value":{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"spec.a: why",`},
		{"all is well again", "{conditions: [" + said + "]}", nil, `[{"op":"test","path":"/status/conditions/0/type","value":"TurnoutFieldsHonored"},{"op":"replace","path":"/status/conditions/0","value":{"lastTransitionTime":"2026-02-01T00:00:00Z","message":"","reason":"AsExpected","status":"True",`},
	} {
		text := "{metadata: {name: a}}"
		if c.status != "" {
			text = "{metadata: {name: a}, status: " + c.status + "}"
		}
		got, err := conditionPatch(object(t, text), c.findings, time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
		if err != nil || !strings.HasPrefix(string(got), c.want) || c.want == "" && got != nil {
			t.Errorf("%s: %s, %v; want %s", c.name, got, err, c.want)
		}
		if got != nil && !json.Valid(got) {
			t.Errorf("%s: %s is no JSON", c.name, got)
		}
	}
	if _, _, message := condition([]Finding{{Text: strings.Repeat("ä", 4000)}}); len(message) > mostMessage || !strings.HasSuffix(message, "ä…") {
		t.Errorf("a message of %d bytes ends with %q", len(message), message[len(message)-6:])
	}
}

// TestFollower: what is referred to is asked for and waited for; what cannot be read later leaves what there was.
func TestFollower(t *testing.T) {
	var wanted []Ref
	key := source.Key{Namespace: "operator", Name: "web"}
	f := NewFollower(key, func(refs []Ref) { wanted = refs })
	self, ca := f.Self(), Ref{source.ConfigMap, source.Key{Namespace: configNamespace, Name: "ca"}}
	f.Put(self, nil, "forbidden")
	if f.Complete() || !strings.Contains(f.missing(), "IngressController operator/web has not been read: forbidden") {
		t.Errorf("complete, or missing %s", f.missing())
	}
	f.Put(self, object(t, "{metadata: {name: web}, spec: {clientTLS: {clientCertificatePolicy: Required, clientCA: {name: ca}}}}"), "")
	if f.Complete() || len(wanted) != 3 || wanted[2] != ca {
		t.Errorf("complete, or %v are wanted", wanted)
	}
	for _, ref := range wanted {
		f.Put(ref, nil, "")
	}
	if !f.Complete() || found(f.Outcome()) != "spec.clientTLS.clientCA" {
		t.Errorf("with a ConfigMap that is not there: %v", f.Outcome().Findings)
	}
	f.Put(ca, object(t, "{data: {ca-bundle.pem: PEM}}"), "")
	good := given(f.Outcome())
	f.Put(ca, nil, "forbidden")
	if got := given(f.Outcome()); got != good || !strings.Contains(found(f.Outcome()), "clientCA") {
		t.Errorf("nobody is notified that it cannot be read any more, or it does not count: %s", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NewFollower(key, nil).Wait(ended, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting ended with %v", err)
	}
	f.Put(self, nil, "")
	if out := f.Outcome(); len(out.Settings) != 0 || found(out) != "metadata.name" {
		t.Errorf("without an object: %+v", out)
	}
}

// TestTee: a folder has what it has delivered and nothing else; typed objects count as well.
func TestTee(t *testing.T) {
	f := NewFollower(source.Key{Namespace: "operator", Name: "web"}, nil)
	var passed int
	sink := f.Tee(sinkFunc(func(events ...source.Event) { passed += len(events) }))
	sink.Event(source.Event{Kind: source.Route, Key: source.Key{Namespace: "a", Name: "b"}})
	if f.Complete() {
		t.Error("complete because of a Route")
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: configNamespace, Name: "pages"}, Data: map[string]string{"error-page-503.http": "503", "error-page-404.http": "404"}}
	sink.Event(
		source.Event{Kind: source.ConfigMap, Key: source.Key{Namespace: configNamespace, Name: "pages"}, Object: config},
		source.Event{Kind: source.IngressController, Key: f.Self().Key, Object: object(t, "{metadata: {name: web}, spec: {httpErrorCodePages: {name: pages}, defaultCertificate: {name: gone}}}")},
	)
	if out := f.Outcome(); !f.Complete() || !strings.Contains(given(out), "<- 404") || found(out) != "spec.defaultCertificate" || passed != 3 {
		t.Errorf("%s, %v, %d passed", given(out), out.Findings, passed)
	}
}

type sinkFunc func(events ...source.Event)

// Event implements source.Sink.
func (f sinkFunc) Event(events ...source.Event) { f(events...) }

// Synced implements source.Sink.
func (sinkFunc) Synced() {}
