package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/admit"
)

var (
	now     = time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	earlier = metav1.NewTime(now.Add(-time.Hour).Truncate(time.Second))
	atNow   = metav1.NewTime(now.Truncate(time.Second))
	options = Options{RouterName: "test1", CanonicalHostname: "c.test"}
	yes     = admit.Verdict{Admitted: true}
	failed  = admit.Verdict{Reason: "Failed", Message: "generic error"}
)

func entry(host string, conditions ...routev1.RouteIngressCondition) *routev1.RouteIngress {
	return &routev1.RouteIngress{Host: host, RouterName: "test1", WildcardPolicy: "None", RouterCanonicalHostname: "c.test", Conditions: conditions}
}

func admitted(status, reason, message string, at metav1.Time) routev1.RouteIngressCondition {
	c := routev1.RouteIngressCondition{Type: routev1.RouteAdmitted, Reason: reason, Message: message, LastTransitionTime: &at}
	c.Status = "True"
	if status != "True" {
		c.Status = "False"
	}
	return c
}

// TestEntry: what becomes of an entry; the time of a condition changes only with the
// condition.
func TestEntry(t *testing.T) {
	unservable := routev1.RouteIngressCondition{Type: "UnservableInFutureVersions", Status: "True"}
	for _, c := range []struct {
		id      string
		old     *routev1.RouteIngress
		verdict admit.Verdict
		want    *routev1.RouteIngress
		changed bool
	}{
		{"entry host/canonical equal, Admitted True; admit: none", entry("h", admitted("True", "", "", earlier)), yes, entry("h", admitted("True", "", "", earlier)), false},
		{"entry with other host, Admitted True; admit: host reset, time = now", entry("other", admitted("True", "", "", earlier)), yes, entry("h", admitted("True", "", "", earlier)), true},
		{"none; reject Failed/generic error: entry created, False", nil, failed, entry("h", admitted("False", "Failed", "generic error", atNow)), true},
		{"identical rejection present; same rejection: none", entry("h", admitted("False", "Failed", "generic error", earlier)), failed, entry("h", admitted("False", "Failed", "generic error", earlier)), false},
		{"other host, Admitted False without reason; reject: updated", entry("other", admitted("False", "", "", earlier)), failed, entry("h", admitted("False", "Failed", "generic error", atNow)), true},
		{"message changed", entry("h", admitted("False", "Failed", "other", earlier)), failed, entry("h", admitted("False", "Failed", "generic error", atNow)), true},
		{"first", nil, yes, entry("h", admitted("True", "", "", atNow)), true},
		{"entry without conditions; condition: condition appended, not \"created\"", entry("h"), yes, entry("h", admitted("True", "", "", atNow)), true},
		{"entry has UnservableInFutureVersions, Admitted added; : both kept", entry("h", unservable), yes, entry("h", unservable, admitted("True", "", "", atNow)), true},
	} {
		before := c.old.DeepCopy()
		got, changed := Entry(options, c.old, "h", "None", c.verdict, now)
		if diff := cmp.Diff(c.want, got); diff != "" || changed != c.changed {
			t.Errorf("%s: changed %v, want %v; (-want +got):\n%s", c.id, changed, c.changed, diff)
		}
		if diff := cmp.Diff(before, c.old); diff != "" {
			t.Errorf("%s: the old entry was written to:\n%s", c.id, diff)
		}
	}
}

func TestPut(t *testing.T) {
	mine, other := *entry("h"), *entry("h")
	other.RouterName = "test2"
	changed := entry("new")
	for _, c := range []struct {
		id        string
		old, want []routev1.RouteIngress
	}{
		{"entries of routers test1, test2; router test2 admits; : only test2's entry changes", []routev1.RouteIngress{other, mine}, []routev1.RouteIngress{other, *changed}},
		{"only another router's entry; condition: second entry appended", []routev1.RouteIngress{other}, []routev1.RouteIngress{other, *changed}},
		{"none", nil, []routev1.RouteIngress{*changed}},
		{"twice", []routev1.RouteIngress{mine, mine}, []routev1.RouteIngress{*changed, mine}},
	} {
		if diff := cmp.Diff(c.want, WithEntry(options, c.old, changed)); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", c.id, diff)
		}
	}
	if got := Find(options, []routev1.RouteIngress{other}); got != nil {
		t.Errorf("Find = %v", got)
	}
	if got := Find(options, []routev1.RouteIngress{other, mine}); got == nil || got.RouterName != "test1" {
		t.Errorf("Find = %v", got)
	}
}
