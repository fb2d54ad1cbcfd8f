package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway/condition"
	"turnout/controller/source"
)

// versions are those of the resources that are supported, without the number of the patch.
var versions = []string{"v1.5", "v1.6"}

// channelExperimental is the channel that has the experimental fields.
const channelExperimental = "experimental"

// judgeClasses says which classes are ours, and their status.
func (j *Judge) judgeClasses(o *Objects) {
	j.referring(&j.ofGateways)
	next := make(map[source.Key]*gatewayv1.GatewayClassStatus)
	for key, class := range o.Classes.All() {
		if class.Spec.ControllerName == j.cfg.Controller {
			if j.guard(Ref{kindClass, key}, func() { next[key] = j.class(o, class) }) {
				continue
			}
			list := condition.List{Generation: class.Generation}
			list.False(string(gatewayv1.GatewayClassConditionStatusAccepted), string(gatewayv1.GatewayClassReasonInvalidParameters), broken)
			next[key] = &gatewayv1.GatewayClassStatus{Conditions: list.Conditions}
		}
	}
	replaceStatus(&j.result, kindClass, j.result.Classes, next)
	j.result.Classes = next
}

// class returns the status of a class of ours.
func (j *Judge) class(o *Objects, class *gatewayv1.GatewayClass) *gatewayv1.GatewayClassStatus {
	list := condition.List{Generation: class.Generation}
	if err := j.classParameters(o, class.Spec.ParametersRef); err != nil {
		list.False(string(gatewayv1.GatewayClassConditionStatusAccepted), string(gatewayv1.GatewayClassReasonInvalidParameters), err.Error())
	} else {
		list.True(string(gatewayv1.GatewayClassConditionStatusAccepted), string(gatewayv1.GatewayClassReasonAccepted), "Turnout serves Gateways of this class")
	}
	if v := o.Installed.Version; v != "" {
		kind := string(gatewayv1.GatewayClassConditionStatusSupportedVersion)
		if slices.ContainsFunc(versions, func(known string) bool { return strings.HasPrefix(v+".", known+".") }) {
			list.True(kind, string(gatewayv1.GatewayClassReasonSupportedVersion), "Resources of the Gateway API "+v+" are supported")
		} else {
			list.False(kind, string(gatewayv1.GatewayClassReasonUnsupportedVersion),
				fmt.Sprintf("Resources of the Gateway API %s are installed; supported: %s", v, strings.Join(versions, ", ")))
		}
	}
	return &gatewayv1.GatewayClassStatus{Conditions: list.Conditions, SupportedFeatures: supportedFeatures(o.Installed.Channel == channelExperimental, o.knows)}
}

// classParameters says why the parameters of a class cannot be used.
func (j *Judge) classParameters(o *Objects, ref *gatewayv1.ParametersReference) error {
	if ref == nil {
		return nil
	}
	if ref.Namespace == nil {
		return fmt.Errorf("parametersRef names %s without a namespace; allowed is a ConfigMap of a namespace", ref.Name)
	}
	return j.parameters(o, ref.Group, ref.Kind, source.Key{Namespace: string(*ref.Namespace), Name: ref.Name})
}

// parameters says why what a parametersRef names cannot be used.
func (j *Judge) parameters(o *Objects, group gatewayv1.Group, kind gatewayv1.Kind, key source.Key) error {
	if group != "" || kind != "ConfigMap" {
		return fmt.Errorf("parametersRef names a %s of group %q; allowed is a ConfigMap", kind, group)
	}
	j.refs.configMaps[key] = struct{}{}
	object := o.ConfigMaps.Get(key)
	if object == nil {
		return fmt.Errorf("ConfigMap %s of parametersRef does not exist", key)
	}
	for _, name := range slices.Sorted(maps.Keys(object.Data)) {
		if j.cfg.Parameter == nil {
			return fmt.Errorf("key %s of ConfigMap %s is unknown", name, key)
		}
		if err := j.cfg.Parameter(name, object.Data[name]); err != nil {
			return fmt.Errorf("key %s of ConfigMap %s: %w", name, key, err)
		}
	}
	return nil
}
