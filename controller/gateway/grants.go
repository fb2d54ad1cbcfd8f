package gateway

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/source"
)

// groupName is the group of the resources of the Gateway API.
const groupName = gatewayv1.GroupName

// permitted reports whether an object of the Gateway API, of a kind in a namespace, may refer to an object of the core group: it is in the same
// namespace, or a ReferenceGrant there says so.
func (j *Judge) permitted(kind, namespace string, to string, target source.Key) bool {
	if namespace == target.Namespace {
		return true
	}
	for _, grant := range j.grants[target.Namespace] {
		if grantsFrom(grant, kind, namespace) && grantsTo(grant, to, target.Name) {
			return true
		}
	}
	return false
}

func grantsFrom(grant *gatewayv1.ReferenceGrant, kind, namespace string) bool {
	for _, from := range grant.Spec.From {
		if from.Group == groupName && string(from.Kind) == kind && string(from.Namespace) == namespace {
			return true
		}
	}
	return false
}

func grantsTo(grant *gatewayv1.ReferenceGrant, kind, name string) bool {
	for _, to := range grant.Spec.To {
		if to.Group == "" && string(to.Kind) == kind && (to.Name == nil || *to.Name == "" || string(*to.Name) == name) {
			return true
		}
	}
	return false
}
