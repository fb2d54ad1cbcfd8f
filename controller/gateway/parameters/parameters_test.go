package parameters

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestRead: what a Gateway says counts before what its class says; what neither says has the value that it has without parameters.
func TestRead(t *testing.T) {
	three := int32(3)
	for name, c := range map[string]struct {
		class, gateway map[string]string
		want           Parameters
	}{
		"nothing":            {nil, nil, Parameters{}},
		"shared":             {map[string]string{"mode": "shared"}, nil, Parameters{}},
		"of the class":       {map[string]string{"mode": "deployment", "replicas": "3"}, nil, Parameters{Deployment: true, Replicas: &three}},
		"of the Gateway":     {nil, map[string]string{"mode": "deployment\n"}, Parameters{Deployment: true}},
		"the Gateway's wins": {map[string]string{"mode": "deployment", "replicas": "1"}, map[string]string{"mode": "shared", "replicas": "3"}, Parameters{Replicas: &three}},
		"type of Services":   {map[string]string{"serviceType": "NodePort"}, map[string]string{"serviceType": "ClusterIP"}, Parameters{ServiceType: corev1.ServiceTypeClusterIP}},
		"amounts": {map[string]string{"cpuRequest": "100m", "memoryRequest": "64Mi"}, map[string]string{"memoryLimit": "64Mi"}, Parameters{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi")}, Limits: corev1.ResourceList{"memory": resource.MustParse("64Mi")},
		}}},
		"what only a class may say": {
			map[string]string{"image": "registry.test/turnout:1", "priorityClass": "edge", "settings": "\n# times\nROUTER_B=$(A) =x\n\nROUTER_A=\n"}, nil,
			Parameters{Image: "registry.test/turnout:1", PriorityClass: "edge", Env: []corev1.EnvVar{{Name: "ROUTER_A"}, {Name: "ROUTER_B", Value: "$$(A) =x"}}},
		},
	} {
		got, err := Read(c.class, c.gateway)
		if err != nil || !got.Equal(&c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestReadFails: what cannot be read is said with its key, and with what is allowed.
func TestReadFails(t *testing.T) {
	var many strings.Builder
	for i := range mostSettings + 1 {
		fmt.Fprintf(&many, "A_%d=x\n", i)
	}
	for _, c := range []struct{ key, value, want string }{
		{"mod", "shared", `key "mod" is unknown; known: cpuLimit, cpuRequest, image, memoryLimit, memoryRequest, mode, priorityClass, replicas, serviceType, settings`},
		{"mode", "both", `key mode: "both" is no mode; allowed: shared, deployment`},
		{"replicas", "0", `key replicas: "0" is no number of pods; allowed: 1 to 100`},
		{"replicas", "101", `key replicas: "101" is no number of pods; allowed: 1 to 100`},
		{"replicas", "two", `key replicas: "two" is no number of pods; allowed: 1 to 100`},
		{"serviceType", "ExternalName", `key serviceType: "ExternalName" is no type of a Service; allowed: LoadBalancer, NodePort, ClusterIP`},
		{"cpuRequest", "much", `key cpuRequest: "much" is no amount; allowed: such as 500m of cpu, 256Mi of memory`},
		{"memoryLimit", "-1", `key memoryLimit: "-1" is no amount; allowed: such as 500m of cpu, 256Mi of memory`},
		{"memoryLimit", strings.Repeat("1", 33), `key memoryLimit: "111111111111111111111111111111111" is no amount; allowed: such as 500m of cpu, 256Mi of memory`},
		{"image", "a b", `key image: "a b" is no image`},
		{"image", "", `key image: "" is no image`},
		{"priorityClass", "A B", `key priorityClass: "A B" is no name of a PriorityClass`},
		{"settings", "router_a=1", `key settings: line "router_a=1" is none; allowed: NAME=VALUE with the name of a variable of the router`},
		{"settings", "A", `key settings: line "A" is none; allowed: NAME=VALUE with the name of a variable of the router`},
		{"settings", "A=1\nA=2", "key settings: A is there twice"},
		{"settings", "TURNOUT_GATEWAY_API=false", "key settings: TURNOUT_GATEWAY_API is set by the Gateway"},
		{"settings", "LD_PRELOAD=/x", "key settings: LD_PRELOAD is set by the Gateway"},
		{"settings", "A=" + strings.Repeat("x", longest+1), "key settings: the value of A is longer than 1024 bytes or has control characters"},
		{"settings", many.String(), "key settings: there are more than 64 settings"},
	} {
		if _, err := Read(map[string]string{c.key: c.value}, nil); err == nil || err.Error() != c.want {
			t.Errorf("%s %.40q: %v, want %s", c.key, c.value, err, c.want)
		}
	}
	if _, err := Read(map[string]string{"cpuRequest": "2"}, map[string]string{"cpuLimit": "1"}); err == nil || err.Error() != "key cpuLimit: 1 is below cpuRequest, 2" {
		t.Errorf("%v", err)
	}
}

// TestTenants: what would run any program, or with any settings, counts in the ConfigMap of a class only.
func TestTenants(t *testing.T) {
	names, classOnly := Keys()
	want := map[string]bool{"image": true, "priorityClass": true, "settings": true}
	for _, name := range names {
		_, err := Read(nil, map[string]string{name: "A=1"})
		if refused := err != nil && err.Error() == "key "+name+" counts in the ConfigMap of the GatewayClass only"; refused != want[name] || classOnly[name] != want[name] {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzRead: any text is read or refused, in few words, and the same each time.
func FuzzRead(f *testing.F) {
	for _, seed := range [][2]string{{"mode", "deployment"}, {"replicas", "3"}, {"memoryLimit", "1e99"}, {"cpuRequest", "0.1"}, {"settings", "A=1\n#\nB=$(A)"}, {"image", "a@sha256:1"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		one, err := Read(map[string]string{key: value}, nil)
		two, again := Read(map[string]string{key: value}, nil)
		if (err == nil) != (again == nil) || err == nil && !reflect.DeepEqual(one, two) {
			t.Fatalf("%v, then %v", err, again)
		}
		if err != nil && len(err.Error()) > 1024 {
			t.Fatalf("%d bytes: %.100s", len(err.Error()), err)
		}
	})
}
