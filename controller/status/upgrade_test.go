package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	routev1 "github.com/openshift/api/route/v1"
)

// TestUpgrade is about the condition UnservableInFutureVersions. A correct condition in an entry with a wrong host,
// does not arise: the entry is made whole by Entry first.
func TestUpgrade(t *testing.T) {
	forced := routev1.RouteIngressCondition{
		Type: Unservable, Status: "True", Reason: "ForceUpgradeValidationCondition", Message: "forced upgrade validation condition", LastTransitionTime: &atNow,
	}
	other, long := forced, forced
	other.Reason = "UpgradeRouteValidationFailed"
	long.LastTransitionTime = &earlier
	yes := admitted("True", "", "", earlier)
	for _, c := range []struct {
		id      string
		upgrade Upgrade
		old     *routev1.RouteIngress
		want    *routev1.RouteIngress
		changed bool
	}{
		{"condition none, clear: none", UpgradeSafe, entry("h", yes), entry("h", yes), false},
		{"condition set, clear: removed, others kept", UpgradeSafe, entry("h", yes, forced), entry("h", yes), true},
		{"condition set, clear: removed, others kept the other way round", UpgradeSafe, entry("h", other, yes), entry("h", yes), true},
		{"condition set with wrong reason, set: replaced", UpgradeForced, entry("h", yes, other), entry("h", yes, forced), true},
		{"condition correct condition but wrong host, set: none (only the condition is compared)", UpgradeForced, entry("wrong", yes, long), entry("wrong", yes, long), false},
		{"condition duplicates of the condition, clear: all removed", UpgradeSafe, entry("h", forced, yes, forced), entry("h", yes), true},
		{"set", UpgradeForced, entry("h", yes), entry("h", yes, forced), true},
		{"set twice", UpgradeForced, entry("h", long, yes, long), entry("h", yes, forced), true},
		{"nothing said", UpgradeUnsaid, entry("h", yes, other), entry("h", yes, other), false},
	} {
		before := c.old.DeepCopy()
		got, changed := c.upgrade.Apply(c.old, now)
		if diff := cmp.Diff(c.want, got); diff != "" || changed != c.changed {
			t.Errorf("%s: changed %v, want %v; (-want +got):\n%s", c.id, changed, c.changed, diff)
		}
		if diff := cmp.Diff(before, c.old); diff != "" {
			t.Errorf("%s: the old entry was written to:\n%s", c.id, diff)
		}
	}
}
