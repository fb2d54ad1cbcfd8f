package kubelet

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func volume(name string, source v1.VolumeSource) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: source}
}

func makeSecret(t *testing.T, ns, name string, data map[string]string) {
	t.Helper()
	_, err := shared.client.CoreV1().Secrets(ns).Create(t.Context(), &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: data}, metav1.CreateOptions{})
	must(t, err)
}

func makeConfigMap(t *testing.T, ns, name string, data map[string]string) {
	t.Helper()
	_, err := shared.client.CoreV1().ConfigMaps(ns).Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
	must(t, err)
}

// output runs a pod to its end and returns what it wrote.
func output(t *testing.T, ns, name string, spec v1.PodSpec) string {
	t.Helper()
	spec.RestartPolicy = v1.RestartPolicyNever
	create(t, ns, name, spec)
	p := eventually(t, ns, name, "at its end", func(p *v1.Pod) bool { return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed })
	if p.Status.Phase != v1.PodSucceeded && p.Status.ContainerStatuses[0].State.Terminated.Reason == "StartError" {
		t.Fatalf("the pod cannot start: %+v", p.Status)
	}
	text := logs(t, ns, name, v1.PodLogOptions{Container: spec.Containers[0].Name})
	if p.Status.Phase != v1.PodSucceeded {
		t.Fatalf("the pod has failed: %s\n%+v", text, p.Status)
	}
	return text
}

// same compares lines.
func same(t *testing.T, got string, want ...string) {
	t.Helper()
	if got != strings.Join(want, "\n")+"\n" {
		t.Errorf("got\n%swant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestVolumesOfSecretsAndConfigMaps(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	makeSecret(t, ns, "secret", map[string]string{"user": "me", "password": "123"})
	makeConfigMap(t, ns, "settings", map[string]string{"a.conf": "first", "b.conf": "second"})
	c := sh("cd /s; ls; cat user; echo; stat -Lc %a user; cd /c; ls; cat x/a; echo; stat -Lc %a x/a; ls /none; cat /one; echo; cat /p/user /p/b; echo; stat -Lc %a /p/b /p/user")
	c.VolumeMounts = []v1.VolumeMount{
		{Name: "s", MountPath: "/s", ReadOnly: true},
		{Name: "c", MountPath: "/c"},
		{Name: "none", MountPath: "/none"},
		{Name: "whole", MountPath: "/one", SubPath: "b.conf"},
		{Name: "p", MountPath: "/p"},
	}
	same(t, output(t, ns, "pod", v1.PodSpec{
		Containers: []v1.Container{c},
		Volumes: []v1.Volume{
			volume("s", v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "secret", DefaultMode: new(int32(0o400))}}),
			volume("c", v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{
				LocalObjectReference: v1.LocalObjectReference{Name: "settings"}, Items: []v1.KeyToPath{{Key: "a.conf", Path: "x/a", Mode: new(int32(0o640))}},
			}}),
			volume("none", v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "missing", Optional: new(true)}}),
			volume("whole", v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}}),
			volume("p", v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
				{Secret: &v1.SecretProjection{LocalObjectReference: v1.LocalObjectReference{Name: "secret"}}},
				{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}, Items: []v1.KeyToPath{{Key: "b.conf", Path: "b", Mode: new(int32(0o600))}}}},
			}}}),
		},
	}), "password", "user", "me", "400", "x", "first", "640", "second", "mesecond", "600", "644")
}

func TestVolumesFollowTheirObjects(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	makeSecret(t, ns, "secret", map[string]string{"a": "old"})
	c := sh("until grep -qs new /s/a && test -e /s/b && test ! -e /o/x; do sleep 0.05; done; ls -A /s | grep -c ^..2; until grep -qs late /o/y; do sleep 0.05; done")
	c.VolumeMounts = []v1.VolumeMount{{Name: "s", MountPath: "/s"}, {Name: "o", MountPath: "/o"}}
	create(t, ns, "pod", v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{c}, Volumes: []v1.Volume{
		volume("s", v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "secret"}}),
		volume("o", v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "later"}, Optional: new(true)}}),
	}})
	eventually(t, ns, "pod", "ready", ready)
	begun := time.Now()
	_, err := shared.client.CoreV1().Secrets(ns).Update(t.Context(), &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "secret"}, StringData: map[string]string{"a": "new", "b": "more"}}, metav1.UpdateOptions{})
	must(t, err)
	makeConfigMap(t, ns, "later", map[string]string{"y": "late"})
	eventually(t, ns, "pod", "succeeded", phase(v1.PodSucceeded))
	t.Logf("changes were seen after %v", time.Since(begun))
	if text := logs(t, ns, "pod", v1.PodLogOptions{}); text != "1\n" {
		t.Errorf("there are %s folders with contents, not 1", text)
	}
}

func TestMissingSecretHoldsThePodBack(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh("cat /s/a")
	c.VolumeMounts = []v1.VolumeMount{{Name: "s", MountPath: "/s"}}
	create(t, ns, "pod", v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{c}, Volumes: []v1.Volume{
		volume("s", v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "later"}}),
	}})
	wantEvent(t, ns, "FailedMount", `secrets "later" not found`)
	p := eventually(t, ns, "pod", "waiting", func(p *v1.Pod) bool { return len(p.Status.ContainerStatuses) > 0 })
	if w := p.Status.ContainerStatuses[0].State.Waiting; p.Status.Phase != v1.PodPending || w == nil || w.Reason != "ContainerCreating" {
		t.Errorf("the status is %+v", p.Status)
	}
	makeSecret(t, ns, "later", map[string]string{"a": "there"})
	eventually(t, ns, "pod", "succeeded", phase(v1.PodSucceeded))
}

func TestFieldsInFiles(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh("cat /d/app; echo; cat /d/ip; echo; cat /d/cpu; echo; until grep -qs blue /d/labels; do sleep 0.05; done; cat /d/labels")
	c.VolumeMounts = []v1.VolumeMount{{Name: "d", MountPath: "/d"}}
	create(t, ns, "pod", v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{c}, Volumes: []v1.Volume{
		volume("d", v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{
			{Path: "app", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels['app']"}},
			{Path: "ip", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}},
			{Path: "cpu", ResourceFieldRef: &v1.ResourceFieldSelector{ContainerName: "main", Resource: "limits.cpu"}},
			{Path: "labels", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
		}}}),
	}})
	eventually(t, ns, "pod", "ready", ready)
	_, err := shared.client.CoreV1().Pods(ns).Patch(t.Context(), "pod", "application/merge-patch+json", []byte(`{"metadata":{"labels":{"color":"blue"}}}`), metav1.PatchOptions{})
	must(t, err)
	eventually(t, ns, "pod", "succeeded", phase(v1.PodSucceeded))
	same(t, logs(t, ns, "pod", v1.PodLogOptions{})+"\n", "pod", "pod", "4", `app="pod"`, `color="blue"`)
}

func TestEmptyDirIsSharedWithItsGroup(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	writer, reader := sh("mkdir /m/d; echo hello >/e/f; until test -e /m/d/answer; do sleep 0.05; done; cat /m/d/answer; df /m | tail -1 | cut -d' ' -f1"), sh("until grep -qs hello /e/f; do sleep 0.05; done; stat -c %g /e /e/f; id -G; echo answer >/m/d/answer")
	writer.Name, reader.Name = "writer", "reader"
	for i, c := range []*v1.Container{&writer, &reader} {
		c.SecurityContext = &v1.SecurityContext{RunAsUser: new(int64(1000 + i)), RunAsGroup: new(int64(0))}
		c.VolumeMounts = []v1.VolumeMount{{Name: "e", MountPath: "/e"}, {Name: "m", MountPath: "/m"}}
	}
	reader.Command[2] = "umask 0; " + reader.Command[2]
	writer.Command[2] = "umask 0; " + writer.Command[2]
	text := output(t, ns, "pod", v1.PodSpec{
		SecurityContext: &v1.PodSecurityContext{FSGroup: new(int64(4321))},
		Containers:      []v1.Container{writer, reader},
		Volumes: []v1.Volume{
			volume("e", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}),
			volume("m", v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory}}),
		},
	})
	same(t, text, "answer", "tmpfs")
	same(t, logs(t, ns, "pod", v1.PodLogOptions{Container: "reader"}), "4321", "4321", "0 4321")
}

func TestToken(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh(`ls -ln --time-style=+ $(readlink -f /t/token) | cut -d' ' -f1,3,4; curl -s --cacert /var/run/secrets/kubernetes.io/serviceaccount/ca.crt -H "Authorization: Bearer $(cat /t/token)" https://` + apiAddress + `:6443/apis/authentication.k8s.io/v1/selfsubjectreviews -X POST -H "Content-Type: application/json" -d '{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}' | grep -o '"username": "[^"]*"'`)
	c.VolumeMounts = []v1.VolumeMount{{Name: "t", MountPath: "/t"}}
	c.SecurityContext = &v1.SecurityContext{RunAsUser: new(int64(1234))}
	same(t, output(t, ns, "pod", v1.PodSpec{Containers: []v1.Container{c}, Volumes: []v1.Volume{
		volume("t", v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{DefaultMode: new(int32(0o400)), Sources: []v1.VolumeProjection{
			{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3600))}},
		}}}),
	}}), "-rw------- 1234 0", `"username": "system:serviceaccount:`+ns+`:default"`)
}

func TestHostPath(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	c := sh("grep -c . /h/hostname")
	c.VolumeMounts = []v1.VolumeMount{{Name: "h", MountPath: "/h", ReadOnly: true}}
	same(t, output(t, ns, "pod", v1.PodSpec{Containers: []v1.Container{c}, Volumes: []v1.Volume{
		volume("h", v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/etc", Type: new(v1.HostPathDirectory)}}),
	}}), "1")
}

// wantEvent waits for an event of the namespace.
func wantEvent(t *testing.T, ns, reason, message string) {
	t.Helper()
	w, err := shared.client.CoreV1().Events(ns).Watch(t.Context(), metav1.ListOptions{TimeoutSeconds: new(int64(patience.Seconds()))})
	must(t, err)
	defer w.Stop()
	for e := range w.ResultChan() {
		if event, ok := e.Object.(*v1.Event); ok && event.Reason == reason && strings.Contains(event.Message, message) {
			return
		}
	}
	t.Fatalf("there is no event %s with %q", reason, message)
}
