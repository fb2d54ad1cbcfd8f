package translate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/endpoints"
)

// TestUnreadKeysAreNoted: a key that looks as if the router should read it is a note, with the one that was most likely meant.
func TestUnreadKeysAreNoted(t *testing.T) {
	for key, want := range map[string]string{
		"haproxy.router.openshift.io/timeut":                               annotationTimeout,
		"haproxy.router.openshift.io/Timeout":                              annotationTimeout,
		"haproxy.router.openshift.io/tiemout":                              annotationTimeout,
		"router.openshift.io/timeout":                                      annotationTimeout,
		"haproxy.router.openshift.io/timeout_tunnel":                       annotationTunnel,
		"haproxy.router.openshift.io/ip_whitelists":                        annotationWhite,
		"haproxy.router.openshift.io/cookie_name":                          annotationCookieName,
		"haproxy.router.openshift.io/disable-cookies":                      annotationDisableCookies,
		"turnout.router/healthcheck-path":                                  annotationCheckPath,
		"turnout.router/slowstart":                                         annotationSlowStart,
		"haproxy.router.openshift.io/rate-limit-connections.concurent-tcp": annotationConcurrent,
		"haproxy.router.openshift.io/x":                                    "",
		"haproxy.router.openshift.io/":                                     "",
		"router.openshift.io/something-else-entirely":                      "",
		"router.openshift.io/" + strings.Repeat("timeout", 9):              "",
	} {
		a := &annotations{values: map[string]string{key: "the secret value", annotationTimeout: "5s", "example.com/timeout": "x"}}
		a.unread()
		if len(a.notes) != 1 || !strings.HasPrefix(a.notes[0], "annotation "+key+": is not one that this router reads") || strings.Contains(a.notes[0], "secret") {
			t.Errorf("%s: %q", key, a.notes)
			continue
		}
		if got := strings.HasSuffix(a.notes[0], "; did you mean "+want+"?"); want != "" && !got || want == "" && strings.Contains(a.notes[0], "mean") {
			t.Errorf("%s: %q, want %q", key, a.notes[0], want)
		}
	}
	many := map[string]string{}
	for i := range 100 {
		many[fmt.Sprintf("turnout.router/unknown-%03d", i)] = "x"
	}
	translator, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	result := translator.Route(Input{Route: &routev1.Route{ObjectMeta: metav1.ObjectMeta{Annotations: many}}, Host: "a.test", Service: func(name string) *endpoints.Set { return &endpoints.Set{Service: name} }, Shared: new(Shared)})
	unread := slices.DeleteFunc(slices.Clone(result.Notes), func(n string) bool {
		return !strings.Contains(n, "not one that") && !strings.Contains(n, "more annotations")
	})
	if len(unread) != maxNoted+1 {
		t.Errorf("%d notes about 100 keys: %q", len(unread), unread)
	}
}

// TestKept: of annotations the values that are read are kept, and of others a few keys.
func TestKept(t *testing.T) {
	ours := map[string]string{annotationTimeout: "5s", "turnout.router/slow-sart": ""}
	if got := Kept(ours); !maps.Equal(got, ours) {
		t.Errorf("%v", got)
	}
	all := map[string]string{"example.com/x": "y", annotationTimeout: "5s", "turnout.router/slow-sart": strings.Repeat("x", 1<<18)}
	if got := Kept(all); !maps.Equal(got, ours) {
		t.Errorf("%.200v", got)
	}
	if got := Kept(map[string]string{"a": "b"}); got != nil {
		t.Errorf("%v", got)
	}
	if Kept(nil) != nil {
		t.Error("something of nothing")
	}
	many := map[string]string{annotationTimeout: "5s"}
	for i := range 100 {
		many[fmt.Sprintf("router.openshift.io/%03d", i)] = ""
	}
	got := Kept(many)
	if len(got) != 1+maxNoted+1 || !maps.Equal(Kept(got), got) {
		t.Errorf("%d are kept of many: %v", len(got), got)
	}
}

func TestShown(t *testing.T) {
	for value, want := range map[string]string{
		"5s": "5s", "": "", "-----BEGIN RSA PRIVATE KEY-----\nx": "REDACTED", "Authorization: Basic YTpi": "REDACTED", "bearer abc": "REDACTED",
		"https://user:secret@example.com/": "REDACTED", "https://example.com/": "https://example.com/", "a@b": "a@b",
	} {
		if got := Shown(value); got != want {
			t.Errorf("%q: %q", value, got)
		}
	}
	if got := Shown(strings.Repeat("ä", 200)); len(got) > mostShown+3 || !strings.HasSuffix(got, "ä...") {
		t.Errorf("a long one: %q", got)
	}
}

// FuzzNearest: whatever a key is, what is suggested is one that is read.
func FuzzNearest(f *testing.F) {
	for _, key := range []string{"haproxy.router.openshift.io/timeut", "turnout.router/", "/", "router.openshift.io/\xff", strings.Repeat("a", 100)} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if near := nearestKey(key); near != "" && !Reads(near) {
			t.Errorf("%q is taken for %q", key, near)
		}
	})
}
