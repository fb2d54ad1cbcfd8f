package shards

import (
	"errors"
	"testing"
)

var errStillThere = errors.New("it is still there")

// aTemplate is the PodTemplate of routers.
const aTemplate = `
apiVersion: v1
kind: PodTemplate
metadata: {name: router, namespace: turnout}
template:
  metadata:
    labels: {app: fleet}
  spec:
    serviceAccountName: router
    terminationGracePeriodSeconds: 60
    securityContext: {runAsNonRoot: true, runAsUser: 1001, seccompProfile: {type: RuntimeDefault}}
    containers:
    - name: router
      image: turnout
      args: [run, --admin-open]
      env:
      - {name: ROUTER_SERVICE_HTTP_PORT, value: "8080"}
      - {name: ROUTER_SERVICE_HTTPS_PORT, value: "8443"}
      - {name: ROUTER_GRACEFUL_SHUTDOWN_DELAY, value: 0s}
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
      startupProbe: {periodSeconds: 1, failureThreshold: 60, httpGet: {path: /healthz/ready, port: 1936}}
`

// TestPodsOfRouters: a Router that asks for pods gets them, as many as it asks for and of the kind that it asks for, and they report to it; what it does not
// ask for any more goes, and what is another's stays.
func TestPodsOfRouters(t *testing.T) {
	startScheduler(t)
	shared.kubectl.Must(t, router("kept", `{"replicas": 2, "podTemplate": {"namespace": "turnout", "name": "router"}}`), "create", "-f", "-")
	deployed := `{.status.conditions[?(@.type=="Deployed")].reason}`
	is(t, "router/kept", `{.status.conditions[?(@.type=="Deployed")].message}`, "there is no PodTemplate turnout/router: create it, or change spec.podTemplate")
	shared.kubectl.Must(t, aTemplate, "create", "-f", "-")
	is(t, "router/kept", deployed, "Ready")
	is(t, "router/kept", "{.status.readyReplicas}", "2")
	is(t, "deployment/router-kept", "{.metadata.ownerReferences[0].name} {.status.readyReplicas}", "kept 2")
	shared.kubectl.Must(t, "", "scale", "router/kept", "--replicas=1")
	is(t, "deployment/router-kept", "{.spec.replicas} {.status.readyReplicas}", "1 1")
	is(t, "router/kept", "{.status.readyReplicas}", "1")
	shared.kubectl.Must(t, "", "patch", "router/kept", "--type=merge", "-p", `{"spec": {"workload": "DaemonSet"}}`)
	is(t, "daemonset/router-kept", "{.status.numberReady}", "1")
	gone(t, "deployment/router-kept")
	shared.kubectl.Must(t, "", "patch", "router/kept", "--type=merge", "-p", `{"spec": {"replicas": null, "podTemplate": null}}`)
	gone(t, "daemonset/router-kept")
	is(t, "router/kept", deployed, "")
	shared.kubectl.Must(t, "", "create", "deployment", "router-kept", "--image=echo", "-n", programs)
	shared.kubectl.Must(t, "", "patch", "router/kept", "--type=merge", "-p", `{"spec": {"replicas": 1, "workload": "Deployment", "podTemplate": {"namespace": "turnout", "name": "router"}}}`)
	is(t, "router/kept", `{.status.conditions[?(@.type=="Deployed")].message}`, "Deployment turnout/router-kept is not this Router's: rename it, or the Router")
	shared.kubectl.Must(t, "", "delete", "router/kept", "deployment/router-kept", "-n", programs)
}

// gone waits until there is no such object.
func gone(t *testing.T, object string) {
	t.Helper()
	eventually(t, object, func() error {
		out, err := shared.kubectl.Run(t.Context(), "", "get", object, "-n", programs, "--ignore-not-found", "-o", "name")
		if err == nil && out != "" {
			return errStillThere
		}
		return err
	})
}
