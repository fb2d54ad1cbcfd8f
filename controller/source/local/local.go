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

// Config says what a Sink does. To is required.
type Config struct {
	Backends Backends
	To       source.Sink
	// Problem is notified of services that are not there, once all there was at the beginning has come, and Cleared of those that are there again;
	// nil = nobody is.
	Problem, Cleared func(source.Problem)
}

// Sink passes events on, with an EndpointSlice for each service of Backends that appears.
type Sink struct {
	cfg Config

	mu      sync.Mutex
	synced  bool
	known   map[string]struct{} // services that are there
	missing map[string]struct{} // Problem was called for them
}

// NewSink returns a Sink before Config.To.
func NewSink(cfg Config) *Sink {
	return &Sink{cfg: cfg, known: make(map[string]struct{}), missing: make(map[string]struct{})}
}

// Event implements source.Sink.
func (s *Sink) Event(events ...source.Event) {
	all := slices.Clone(events)
	s.mu.Lock()
	for _, e := range events {
		service := e.Key.String()
		ports := s.cfg.Backends[service]
		if e.Kind != source.Service || len(ports) == 0 {
			continue
		}
		object, there := e.Object.(*corev1.Service)
		if there {
			s.known[service] = struct{}{}
		} else {
			delete(s.known, service)
		}
		for _, port := range ports {
			all = append(all, sliceOf(e.Key, object, port))
		}
	}
	s.compare()
	s.mu.Unlock()
	s.cfg.To.Event(all...)
}

// Synced implements source.Sink.
func (s *Sink) Synced() {
	s.mu.Lock()
	s.synced = true
	s.compare()
	s.mu.Unlock()
	s.cfg.To.Synced()
}

// compare tells of services that are missing now, and of those that are not any more. The caller holds mu.
func (s *Sink) compare() {
	if !s.synced {
		return
	}
	for service := range s.cfg.Backends {
		_, there := s.known[service]
		_, notified := s.missing[service]
		tell := s.cfg.Problem
		switch {
		case there != notified:
			continue
		case there:
			delete(s.missing, service)
			tell = s.cfg.Cleared
		default:
			s.missing[service] = struct{}{}
		}
		if tell != nil {
			tell(source.Problem{File: "--backend", Object: "Service " + service, Severity: source.Warning, Reason: "there is no such Service in the manifests"})
		}
	}
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
