package gateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"turnout/controller/gateway/condition"
	"turnout/controller/gateway/parameters"
	"turnout/controller/source"
)

// versions are those of the resources that are supported, without the number of the patch.
var versions = []string{"v1.5", "v1.6"}

// channelExperimental is the channel that has the experimental fields.
const channelExperimental = "experimental"

// judgeClasses says which classes are ours, and their status.
func (j *Judge) judgeClasses(o *Objects) {
	j.referring(&j.ofGateways)
	j.parameters = make(map[source.Key]map[string]string)
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
	if err := j.classParameters(o, class); err != nil {
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

// classParameters notes the parameters of a class, or says why they cannot be used.
func (j *Judge) classParameters(o *Objects, class *gatewayv1.GatewayClass) error {
	ref := class.Spec.ParametersRef
	if ref == nil || j.cfg.Only != (source.Key{}) {
		return nil
	}
	if ref.Namespace == nil {
		return fmt.Errorf("parametersRef names %s without a namespace; allowed is a ConfigMap of a namespace", ref.Name)
	}
	data, key, err := j.parametersOf(o, ref.Group, ref.Kind, source.Key{Namespace: string(*ref.Namespace), Name: ref.Name})
	if err != nil {
		return err
	}
	if _, err := j.readParameters(data, nil); err != nil {
		return fmt.Errorf("ConfigMap %s: %w", key, err)
	}
	j.parameters[source.Key{Name: class.Name}] = data
	return nil
}

// parametersOf returns the data of the ConfigMap that a parametersRef names.
func (j *Judge) parametersOf(o *Objects, group gatewayv1.Group, kind gatewayv1.Kind, key source.Key) (map[string]string, source.Key, error) {
	if group != "" || kind != "ConfigMap" {
		return nil, key, fmt.Errorf("parametersRef names a %s of group %q; allowed is a ConfigMap", kind, group)
	}
	j.refs.configMaps[key] = struct{}{}
	object := o.ConfigMaps.Get(key)
	if object == nil {
		return nil, key, fmt.Errorf("ConfigMap %s of parametersRef does not exist", key)
	}
	return object.Data, key, nil
}

// readParameters reads what a class and a Gateway say, and whether it can be had here.
func (j *Judge) readParameters(class, gateway map[string]string) (*parameters.Parameters, error) {
	p, err := j.cfg.Parameters(class, gateway)
	if err == nil && p.Deployment && !j.cfg.Deployments {
		return nil, errors.New("key mode: the router was not started with --gateway-deployments, so no Gateway has pods of its own")
	}
	return p, err
}

// gatewayParameters returns the parameters of a Gateway, or says why they cannot be used.
func (j *Judge) gatewayParameters(o *Objects, object *gatewayv1.Gateway) (*parameters.Parameters, error) {
	class := j.parameters[source.Key{Name: string(object.Spec.GatewayClassName)}]
	i := object.Spec.Infrastructure
	if i == nil || i.ParametersRef == nil {
		return j.readParameters(class, nil)
	}
	data, key, err := j.parametersOf(o, i.ParametersRef.Group, i.ParametersRef.Kind, source.Key{Namespace: object.Namespace, Name: i.ParametersRef.Name})
	if err != nil {
		return nil, err
	}
	p, err := j.readParameters(class, data)
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", key, err)
	}
	return p, nil
}
