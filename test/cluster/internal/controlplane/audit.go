package controlplane

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// auditPolicy records who asked for what of service accounts, once per request when it
// is answered; watches when they begin.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, Panic]
rules:
- level: Metadata
  userGroups: [system:serviceaccounts]
- level: None
`

func (c *ControlPlane) auditLog() string { return filepath.Join(c.cfg.Logs, "audit.log") }

// Audit returns what a user has asked the API server, oldest first.
func (c *ControlPlane) Audit(user string) ([]auditv1.Event, error) {
	text, err := os.ReadFile(c.auditLog())
	if err != nil {
		return nil, fmt.Errorf("cannot read the audit log: %w", err)
	}
	var events []auditv1.Event
	for line := range bytes.Lines(text) {
		var e auditv1.Event
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // being written
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("cannot read the audit log: %w", err)
		}
		if e.User.Username == user {
			events = append(events, e)
		}
	}
	return events, nil
}
