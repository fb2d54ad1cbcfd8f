// Package parameters reads what ConfigMaps say, by the parametersRef of a GatewayClass or of a Gateway, about how Gateways are run: by the pods that all share, or
// by a Deployment of their own, and what that is like. It is pure.
//
// Who writes the ConfigMap of a class administers the cluster; who writes that of a Gateway may be a tenant with few permissions. So keys by which one could run
// any program, or have the router do other things than serve, count in the ConfigMap of a class only.
package parameters

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Parameters are how a Gateway is run. The zero value is a Gateway without parameters.
type Parameters struct {
	Deployment    bool               // it has pods of its own; else those of the router serve it
	Replicas      *int32             // of the Deployment; nil = a user or an autoscaler decides, 1 at first
	ServiceType   corev1.ServiceType // "" = that of the router's options
	Image         string             // of the pods; "" = that of the router
	PriorityClass string             // of the pods; "" = none
	Resources     corev1.ResourceRequirements
	Env           []corev1.EnvVar // settings of the router's program, by name
}

// Equal reports whether both are the same.
func (p *Parameters) Equal(o *Parameters) bool { return reflect.DeepEqual(p, o) }

// Owner is whose parametersRef names a ConfigMap.
type Owner uint8

// The owners.
const (
	OfClass Owner = iota
	OfGateway
)

// Bounds of what is read.
const (
	mostReplicas = 100
	mostSettings = 64
	longest      = 1024 // bytes of an image, or of the value of a setting
)

// key is one that is known.
type key struct {
	classOnly bool
	read      func(p *Parameters, value string) error
}

// keys are those that are known.
var keys = map[string]key{
	"mode":          {read: readMode},
	"replicas":      {read: readReplicas},
	"serviceType":   {read: readServiceType},
	"cpuRequest":    {read: quantity(corev1.ResourceCPU, requests)},
	"cpuLimit":      {read: quantity(corev1.ResourceCPU, limits)},
	"memoryRequest": {read: quantity(corev1.ResourceMemory, requests)},
	"memoryLimit":   {read: quantity(corev1.ResourceMemory, limits)},
	"image":         {classOnly: true, read: readImage},
	"priorityClass": {classOnly: true, read: readPriorityClass},
	"settings":      {classOnly: true, read: readSettings},
}

// Keys returns the names of all keys, in order, and which of them count in the ConfigMap of a class only.
func Keys() (names []string, classOnly map[string]bool) {
	classOnly = make(map[string]bool)
	for name, k := range keys {
		classOnly[name] = k.classOnly
	}
	return slices.Sorted(maps.Keys(keys)), classOnly
}

// Read returns the parameters that the data of ConfigMaps make, either of which may be nil. What a Gateway says counts before what its class says. The error names
// the key that is wrong.
func Read(class, gateway map[string]string) (*Parameters, error) {
	p := new(Parameters)
	if err := p.read(class, OfClass); err != nil {
		return nil, err
	}
	if err := p.read(gateway, OfGateway); err != nil {
		return nil, err
	}
	for name, request := range p.Resources.Requests {
		if limit, ok := p.Resources.Limits[name]; ok && limit.Cmp(request) < 0 {
			return nil, fmt.Errorf("key %sLimit: %s is below %sRequest, %s", name, limit.String(), name, request.String())
		}
	}
	return p, nil
}

// read reads one ConfigMap.
func (p *Parameters) read(data map[string]string, of Owner) error {
	for _, name := range slices.Sorted(maps.Keys(data)) {
		k, known := keys[name]
		switch {
		case !known:
			all, _ := Keys()
			return fmt.Errorf("key %s is unknown; known: %s", strconv.Quote(short(name)), strings.Join(all, ", "))
		case k.classOnly && of != OfClass:
			return fmt.Errorf("key %s counts in the ConfigMap of the GatewayClass only", name)
		}
		if err := k.read(p, strings.TrimSpace(data[name])); err != nil {
			return fmt.Errorf("key %s: %w", name, err)
		}
	}
	return nil
}

// short is a text that people are shown.
func short(text string) string {
	if len(text) > 64 {
		return text[:64] + "..."
	}
	return text
}

func readMode(p *Parameters, value string) error {
	switch value {
	case "shared":
		p.Deployment = false
	case "deployment":
		p.Deployment = true
	default:
		return fmt.Errorf("%q is no mode; allowed: shared, deployment", short(value))
	}
	return nil
}

func readReplicas(p *Parameters, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > mostReplicas {
		return fmt.Errorf("%q is no number of pods; allowed: 1 to %d", short(value), mostReplicas)
	}
	replicas := int32(n)
	p.Replicas = &replicas
	return nil
}

func readServiceType(p *Parameters, value string) error {
	switch kind := corev1.ServiceType(value); kind {
	case corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort, corev1.ServiceTypeClusterIP:
		p.ServiceType = kind
		return nil
	}
	return fmt.Errorf("%q is no type of a Service; allowed: LoadBalancer, NodePort, ClusterIP", short(value))
}

func requests(r *corev1.ResourceRequirements) *corev1.ResourceList { return &r.Requests }

func limits(r *corev1.ResourceRequirements) *corev1.ResourceList { return &r.Limits }

// quantity reads how much of a resource pods ask for, or may have.
func quantity(name corev1.ResourceName, in func(*corev1.ResourceRequirements) *corev1.ResourceList) func(*Parameters, string) error {
	return func(p *Parameters, value string) error {
		amount, err := parseQuantity(value)
		if err != nil || amount.Sign() <= 0 {
			return fmt.Errorf("%q is no amount; allowed: such as 500m of cpu, 256Mi of memory", short(value))
		}
		list := in(&p.Resources)
		if *list == nil {
			*list = make(corev1.ResourceList)
		}
		(*list)[name] = amount
		return nil
	}
}

// parseQuantity reads an amount in few bytes: the parser of the API takes any number of digits.
func parseQuantity(value string) (resource.Quantity, error) {
	if len(value) > 32 {
		return resource.Quantity{}, errors.New("it is too long")
	}
	return resource.ParseQuantity(value) //nolint:wrapcheck // the caller says what is allowed
}

func readImage(p *Parameters, value string) error {
	if value == "" || len(value) > longest || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%q is no image", short(value))
	}
	p.Image = value
	return nil
}

func readPriorityClass(p *Parameters, value string) error {
	if len(validation.IsDNS1123Subdomain(value)) > 0 {
		return fmt.Errorf("%q is no name of a PriorityClass", short(value))
	}
	p.PriorityClass = value
	return nil
}

// setting is the name of a variable that the program reads.
var setting = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,127}$`)

// reserved begin the names of variables that a Deployment sets itself, or Kubernetes does.
var reserved = []string{"TURNOUT_GATEWAY", "POD_", "KUBERNETES_", "LD_", "GO"}

// readSettings reads lines NAME=VALUE; empty lines and those that begin with # say nothing.
func readSettings(p *Parameters, value string) error {
	var list []corev1.EnvVar
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, text, ok := strings.Cut(line, "=")
		switch {
		case !ok || !setting.MatchString(name):
			return fmt.Errorf("line %q is none; allowed: NAME=VALUE with the name of a variable of the router", short(line))
		case slices.ContainsFunc(reserved, func(prefix string) bool { return strings.HasPrefix(name, prefix) }):
			return fmt.Errorf("%s is set by the Gateway", name)
		case slices.ContainsFunc(list, func(e corev1.EnvVar) bool { return e.Name == name }):
			return fmt.Errorf("%s is there twice", name)
		case len(text) > longest || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return fmt.Errorf("the value of %s is longer than %d bytes or has control characters", name, longest)
		case len(list) == mostSettings:
			return fmt.Errorf("there are more than %d settings", mostSettings)
		}
		list = append(list, corev1.EnvVar{Name: name, Value: strings.ReplaceAll(text, "$", "$$")}) // pods put variables in the place of $(NAME)
	}
	slices.SortFunc(list, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	p.Env = list
	return nil
}
