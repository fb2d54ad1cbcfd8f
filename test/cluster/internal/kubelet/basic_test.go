package kubelet

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestCommandSucceeds(t *testing.T) {
	t.Parallel()
	ns := shared.namespace(t)
	create(t, ns, "pod", v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{sh("echo hello")}})
	p := eventually(t, ns, "pod", "succeeded", phase(v1.PodSucceeded))
	if text := logs(t, ns, "pod", v1.PodLogOptions{}); text != "hello\n" {
		t.Errorf("the log is %q", text)
	}
	if end := p.Status.ContainerStatuses[0].State.Terminated; end == nil || end.Reason != "Completed" || end.ExitCode != 0 {
		t.Errorf("the container's state is %+v", p.Status.ContainerStatuses[0].State)
	}
}
