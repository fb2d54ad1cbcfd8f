// Package local gives services of manifests endpoints on this machine: a laptop has no pods, and nobody who makes EndpointSlices for the
// selector of a Service.
package local

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"turnout/controller/source"
)

// Backends are ports of 127.0.0.1 by NAMESPACE/SERVICE.
type Backends map[string][]uint16

// Add takes NAMESPACE/SERVICE=PORT in. The error says what is allowed.
func (b Backends) Add(text string) error {
	service, digits, ok := strings.Cut(text, "=")
	namespace, name, slash := strings.Cut(service, "/")
	port, err := strconv.ParseUint(digits, 10, 16)
	if !ok || !slash || namespace == "" || name == "" || strings.Contains(name, "/") || err != nil || port == 0 {
		return errors.New("allowed: NAMESPACE/SERVICE=PORT, such as default/app=3000")
	}
	if !slices.Contains(b[service], uint16(port)) {
		b[service] = append(b[service], uint16(port))
	}
	return nil
}

// Sink passes events on, with an EndpointSlice for each service of Backends that appears.
type Sink struct {
	backends Backends
	to       source.Sink
	problem  func(source.Problem)

	mu    sync.Mutex
	known map[string]struct{}
}

// NewSink returns a Sink before to. problem is told of services that are not there; nil = nobody is.
func NewSink(backends Backends, to source.Sink, problem func(source.Problem)) *Sink {
	return &Sink{backends: backends, to: to, problem: problem, known: make(map[string]struct{})}
}

// Event implements source.Sink.
func (s *Sink) Event(events ...source.Event) {
	all := slices.Clone(events)
	for _, e := range events {
		service := e.Key.String()
		ports := s.backends[service]
		if e.Kind != source.Service || len(ports) == 0 {
			continue
		}
		s.mu.Lock()
		s.known[service] = struct{}{}
		s.mu.Unlock()
		object, _ := e.Object.(*corev1.Service)
		for _, port := range ports {
			all = append(all, sliceOf(e.Key, object, port))
		}
	}
	s.to.Event(all...)
}

// Synced implements source.Sink.
func (s *Sink) Synced() {
	s.mu.Lock()
	for service := range s.backends {
		if _, ok := s.known[service]; !ok && s.problem != nil {
			s.problem(source.Problem{File: "--backend", Object: "Service " + service, Severity: source.Warning, Reason: "there is no such Service in the manifests yet"})
		}
	}
	s.mu.Unlock()
	s.to.Synced()
}

// sliceOf is the EndpointSlice of a port of this machine. Each port of the service leads there; service nil = it is gone, and the slice with it.
func sliceOf(key source.Key, service *corev1.Service, port uint16) source.Event {
	name := fmt.Sprintf("%s-backend-%d", key.Name, port)
	e := source.Event{Kind: source.EndpointSlice, Key: source.Key{Namespace: key.Namespace, Name: name}, Origin: "--backend"}
	if service == nil {
		return e
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: key.Name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"127.0.0.1"}}},
	}
	number := int32(port)
	for i := range service.Spec.Ports {
		p := &service.Spec.Ports[i]
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &number, AppProtocol: p.AppProtocol})
	}
	if len(slice.Ports) == 0 {
		slice.Ports = []discoveryv1.EndpointPort{{Port: &number}}
	}
	e.Object = slice
	return e
}
