package gateway

import (
	"cmp"
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"turnout/test/cluster/await"
)

var (
	profiles = flag.String("profiles", "", "conformance profiles, by comma; all for which there are resources without it")
	only     = flag.String("only", "", "the one test that is run; all of the profiles without it")
	report   = flag.String("report", "", "file for the ConformanceReport")
	mode     = flag.String("mode", "shared", "how the Gateways of the suite are run: shared or deployment")
	suite    = flag.String("suite", "", "further flags of the suite")
)

// patience is how long something may take that others do.
const patience = 2 * time.Minute

// aRouter is the Deployment of routers.
const aRouter = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: turnout, namespace: turnout}
spec:
  replicas: 1
  selector: {matchLabels: {app.kubernetes.io/name: turnout, app.kubernetes.io/component: router}}
  template:
    metadata: {labels: {app.kubernetes.io/name: turnout, app.kubernetes.io/component: router}}
    spec:
      serviceAccountName: router
      securityContext: {runAsNonRoot: true, runAsUser: 1001, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: router
        image: turnout
        args: [run, --admin-open, --reason-header, --access-log=stdout]
        env:
        - {name: TURNOUT_GATEWAY_API, value: "true"}
        - {name: TURNOUT_GATEWAY_PODS, value: turnout/turnout-gateways}
        - {name: TURNOUT_GATEWAY_DEPLOYMENTS, value: "true"}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: ROUTER_SERVICE_HTTP_PORT, value: "8080"}
        - {name: ROUTER_SERVICE_HTTPS_PORT, value: "8443"}
        - {name: ROUTER_GRACEFUL_SHUTDOWN_DELAY, value: 0s}
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        readinessProbe: {periodSeconds: 1, failureThreshold: 60, httpGet: {path: /healthz/ready, port: 1936}}
`

// parameters are those of Gateways with pods of their own, which end as soon as nothing runs any more.
const parameters = `
apiVersion: v1
kind: ConfigMap
metadata: {name: deployment, namespace: turnout}
data:
  mode: deployment
  cpuRequest: 10m
  memoryRequest: 32Mi
  settings: |
    ROUTER_GRACEFUL_SHUTDOWN_DELAY=0s
`

// startRouter starts the router, unless it runs.
func startRouter(t *testing.T) {
	t.Helper()
	shared.kubectl.Must(t, aRouter, "apply", "-f", "-")
	t.Cleanup(func() { keepLog(t) })
	await.Eventually(t, patience, "the class is accepted", func() error {
		_, err := shared.kubectl.Run(t.Context(), "", "wait", "--for=condition=Accepted", "gatewayclass/turnout", "--timeout=1s")
		return err
	})
}

// TestConformance: the suite passes.
func TestConformance(t *testing.T) {
	startRouter(t)
	if *mode == "deployment" {
		shared.kubectl.Must(t, parameters, "apply", "-f", "-")
		shared.kubectl.Must(t, "", "patch", "gatewayclass/turnout", "--type=merge", "-p", `{"spec": {"parametersRef": {"group": "", "kind": "ConfigMap", "name": "deployment", "namespace": "turnout"}}}`)
		t.Cleanup(func() {
			if _, err := shared.kubectl.Run(context.Background(), "", "patch", "gatewayclass/turnout", "--type=merge", "-p", `{"spec": {"parametersRef": null}}`); err != nil {
				t.Error(err)
			}
		})
	}
	args := []string{
		"-test.v", "-test.timeout=30m", "-test.run=^TestConformance$", "-gateway-class=turnout", "-conformance-profiles=" + cmp.Or(*profiles, strings.Join(shared.profiles, ",")),
		"-usable-address=10.100.200.1", "-unusable-address=192.0.2.1",
	}
	if *release != "" {
		args = append(args, "-allow-crds-mismatch")
	}
	if *only != "" {
		args = append(args, "-run-test="+*only)
	}
	if *report != "" {
		args = append(args, "-report-output="+*report, "-organization=turnout", "-project=turnout", "-url=https://example.com/turnout", "-version=v0.0.0", "-contact=@turnout", "-mode="+map[string]string{"shared": "default"}[*mode]+strings.TrimPrefix(*mode, "shared"))
	}
	args = append(args, strings.Fields(*suite)...)
	c := exec.CommandContext(t.Context(), filepath.Join(bin, "gateway-suite"), args...)
	c.Env = append(os.Environ(), "KUBECONFIG="+string(shared.kubectl))
	text, err := os.Create(filepath.Join(shared.logs, "suite.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	lines := &summary{t: t}
	c.Stdout, c.Stderr = io.MultiWriter(text, lines), text
	if err := c.Run(); err != nil {
		t.Errorf("the suite failed: %v; all it said is in %s", err, text.Name())
	}
}

// summary tells of the results among the lines of the suite.
type summary struct {
	t    *testing.T
	rest string
}

// Write implements io.Writer.
func (s *summary) Write(p []byte) (int, error) {
	lines := strings.Split(s.rest+string(p), "\n")
	s.rest = lines[len(lines)-1]
	for _, line := range lines[:len(lines)-1] {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "--- ") && strings.Count(trimmed, "/") < 2 {
			s.t.Log(trimmed)
		}
	}
	return len(p), nil
}

// keepLog writes what the router said to a file.
func keepLog(t *testing.T) {
	out, err := shared.kubectl.Run(context.Background(), "", "-n", "turnout", "logs", "deployment/turnout", "--tail=-1")
	if err != nil {
		out += err.Error()
	}
	if err := os.WriteFile(filepath.Join(shared.logs, "router.log"), []byte(out), 0o600); err != nil {
		t.Error(err)
	}
}
