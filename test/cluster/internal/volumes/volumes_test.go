package volumes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// tokenPod has a volume with a token.
func tokenPod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid"},
		Spec: v1.PodSpec{ServiceAccountName: "robot", Volumes: []v1.Volume{{Name: "t", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{
			DefaultMode: new(int32(0o644)),
			Sources: []v1.VolumeProjection{{ServiceAccountToken: &v1.ServiceAccountTokenProjection{
				Path: "token", Audience: "vault", ExpirationSeconds: new(int64(3600)),
			}}},
		}}}}},
	}
}

func TestTokensAreReplacedInTime(t *testing.T) {
	client := fake.NewClientset()
	var asked atomic.Int32
	life := time.Hour
	client.PrependReactor("create", "serviceaccounts", func(a clienttesting.Action) (bool, runtime.Object, error) {
		request := a.(clienttesting.CreateAction).GetObject().(*authentication.TokenRequest)
		ref := request.Spec.BoundObjectRef
		if a.GetSubresource() != "token" || ref.Name != "pod" || ref.UID != "uid" || request.Spec.Audiences[0] != "vault" || *request.Spec.ExpirationSeconds != 3600 {
			t.Errorf("the request is %+v", request.Spec)
		}
		return true, &authentication.TokenRequest{Status: authentication.TokenRequestStatus{
			Token: fmt.Sprint("token ", asked.Add(1)), ExpirationTimestamp: metav1.NewTime(time.Now().Add(life)),
		}}, nil
	})
	pod := tokenPod()
	set, err := New(t.Context(), Config{Client: client}, t.TempDir(), pod)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(set.Path("t"), "token"))
		if err != nil || string(text) != want {
			t.Errorf("the token is %q, %v; want %q", text, err, want)
		}
	}
	expect("token 1")
	if in := time.Until(set.NextToken()); in > 48*time.Minute || in < 47*time.Minute {
		t.Errorf("it is replaced in %v, want four fifths of an hour", in)
	}
	refresh := func() {
		t.Helper()
		if err := set.Refresh(context.Background(), pod); err != nil {
			t.Fatal(err)
		}
	}
	refresh()
	expect("token 1") // as it is still good
	set.tokens["t/token"].replace = time.Now()
	life = 72 * time.Hour
	refresh()
	expect("token 2")
	if in := time.Until(set.NextToken()); in > 24*time.Hour {
		t.Errorf("it is replaced in %v, want a day at most", in)
	}
	dir := set.Path("t")
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	refresh() // of volumes that are gone does nothing
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the volume is still there: %v", err)
	}
}

func TestFailureLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volumes")
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}, Spec: v1.PodSpec{Volumes: []v1.Volume{
		{Name: "a", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "b", VolumeSource: v1.VolumeSource{NFS: &v1.NFSVolumeSource{}}},
	}}}
	if _, err := New(t.Context(), Config{Client: fake.NewClientset()}, dir, pod); err == nil {
		t.Error("a volume of a type that is not supported is made")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("something is left: %v", err)
	}
}

func TestHostPathTypes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		kind v1.HostPathType
		ok   bool
	}{
		{dir, v1.HostPathDirectory, true}, {file, v1.HostPathDirectory, false}, {file, v1.HostPathFile, true}, {dir, v1.HostPathFile, false},
		{dir + "/new/dir", v1.HostPathDirectoryOrCreate, true}, {dir + "/newfile", v1.HostPathFileOrCreate, true},
		{dir + "/missing", v1.HostPathSocket, false}, {"/dev/null", v1.HostPathCharDev, true}, {dir + "/missing", v1.HostPathUnset, true}, {dir, "Odd", false},
	} {
		if err := checkHostPath(&v1.HostPathVolumeSource{Path: c.path, Type: &c.kind}); (err == nil) != c.ok {
			t.Errorf("%s as %q: %v", c.path, c.kind, err)
		}
	}
}

func TestUses(t *testing.T) {
	pod := &v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{
		{VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "a"}}},
		{VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "b"}}}},
		{VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
			{Secret: &v1.SecretProjection{LocalObjectReference: v1.LocalObjectReference{Name: "c"}}},
			{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "d"}}},
		}}}},
	}}}
	for object, want := range map[[2]string]bool{
		{"Secret", "a"}: true, {"ConfigMap", "a"}: false, {"ConfigMap", "b"}: true, {"Secret", "b"}: false,
		{"Secret", "c"}: true, {"ConfigMap", "d"}: true, {"Secret", "d"}: false, {"Secret", "x"}: false,
	} {
		if got := Uses(pod, object[0], object[1]); got != want {
			t.Errorf("uses %v: %v", object, got)
		}
	}
}
