package ingresscontroller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Condition is the type of the condition that says which fields have no effect. The operator keeps conditions that it does not know.
const Condition = "TurnoutFieldsHonored"

// Reasons of the condition.
const (
	ReasonAll     = "AsExpected"
	ReasonIgnored = "FieldsWithoutEffect"
)

// mostMessage bounds the message of the condition, in bytes; longer ones end with an ellipsis.
const mostMessage = 4096

// String is for people.
func (f Finding) String() string {
	if f.Field == "" {
		return f.Text
	}
	return f.Field + ": " + f.Text
}

// condition is what the status is to say.
func condition(findings []Finding) (status, reason, message string) {
	if len(findings) == 0 {
		return "True", ReasonAll, ""
	}
	texts := make([]string, len(findings))
	for i, f := range findings {
		texts[i] = f.String()
	}
	message = strings.Join(texts, "; ")
	if len(message) > mostMessage {
		message = strings.ToValidUTF8(message[:mostMessage-len("…")], "") + "…"
	}
	return "False", ReasonIgnored, message
}

// Report brings the condition of the object up to date with findings, if it says anything else. patch applies a JSON patch (RFC 6902) to its
// status. Without an object there is nothing to do.
func (f *Follower) Report(ctx context.Context, patch func(ctx context.Context, ref Ref, patch []byte) error, findings []Finding) error {
	f.mu.Lock()
	object := f.all[f.self].Object
	f.mu.Unlock()
	if object == nil {
		return nil
	}
	text, err := conditionPatch(object, findings, time.Now())
	if err != nil || text == nil {
		return err
	}
	return patch(ctx, f.self, text)
}

// conditionPatch is what changes the condition, nil if it is right. It fails when another one has taken its place meanwhile.
func conditionPatch(object *unstructured.Unstructured, findings []Finding, now time.Time) ([]byte, error) {
	status, reason, message := condition(findings)
	next := map[string]any{"type": Condition, "status": status, "reason": reason, "message": message, "lastTransitionTime": now.UTC().Format(time.RFC3339)}
	type step struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	conditions, there, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for i, c := range conditions {
		before, ok := c.(map[string]any)
		if !ok || before["type"] != Condition {
			continue
		}
		if before["status"] == status && before["reason"] == reason && fmt.Sprint(before["message"]) == message {
			return nil, nil
		}
		if before["status"] == status {
			next["lastTransitionTime"] = before["lastTransitionTime"]
		}
		at := fmt.Sprintf("/status/conditions/%d", i)
		return json.Marshal([]step{{"test", at + "/type", Condition}, {"replace", at, next}})
	}
	if len(findings) == 0 {
		return nil, nil // nothing to say, and nothing was said
	}
	var steps []step
	if _, ok := object.Object["status"]; !ok {
		steps = append(steps, step{"add", "/status", map[string]any{}})
	}
	if !there {
		return json.Marshal(append(steps, step{"add", "/status/conditions", []any{next}}))
	}
	return json.Marshal(append(steps, step{"add", "/status/conditions/-", next}))
}

// firstLook is how long Wait waits without a word, and between two words.
const firstLook = 10 * time.Second

// Wait returns when the object and all that it refers to have been looked for. waiting is called now and then with what is missing. An error is that of ctx.
func (f *Follower) Wait(ctx context.Context, waiting func(what string)) error {
	patience := time.NewTicker(firstLook)
	defer patience.Stop()
	for !f.Complete() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.changed:
		case <-patience.C:
			waiting(f.missing())
		}
	}
	return nil
}

// missing says what has not been read, and why.
func (f *Follower) missing() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if of, there := f.all[f.self]; !there || !f.known {
		return nameOf(f.self, of.Err)
	}
	var all []error
	for _, ref := range Refs(f.all[f.self].Object) {
		if _, there := f.all[ref]; !there {
			all = append(all, errors.New(nameOf(ref, "")))
		}
	}
	return fmt.Sprint(errors.Join(all...))
}

func nameOf(ref Ref, why string) string {
	text := ref.Kind.String() + " " + ref.Key.String() + " has not been read"
	if why != "" {
		text += ": " + why
	}
	return text
}
