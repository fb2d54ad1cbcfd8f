package status

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"

	"turnout/controller/source"
)

// ServiceAddresses returns IngressWriterConfig.Read of a Service: the addresses and host names of its load balancer, else its external IPs. core speaks of v1 and
// knows its types; it needs list on services.
func ServiceAddresses(core rest.Interface, service source.Key) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var list corev1.ServiceList
		err := core.Get().Namespace(service.Namespace).Resource("services").Param("fieldSelector", fields.OneTermEqualSelector("metadata.name", service.Name).String()).Do(ctx).Into(&list)
		if err != nil {
			return nil, fmt.Errorf("cannot read Service %s: %w", service, err)
		}
		if len(list.Items) == 0 {
			return nil, fmt.Errorf("cannot read Service %s: there is none", service)
		}
		o := &list.Items[0]
		var all []string
		for _, in := range o.Status.LoadBalancer.Ingress {
			if in.IP != "" {
				all = append(all, in.IP)
			}
			if in.Hostname != "" {
				all = append(all, in.Hostname)
			}
		}
		if len(all) == 0 {
			all = o.Spec.ExternalIPs
		}
		return all, nil
	}
}

// How often addresses are read, and how long that may take.
const (
	addressesPause = 10 * time.Second
	addressesTime  = 5 * time.Second
)

// followAddresses has statuses say what Read says, until ctx is done.
func (w *IngressWriter) followAddresses(ctx context.Context) {
	tick := time.NewTicker(addressesPause)
	defer tick.Stop()
	said := ""
	for {
		call, cancel := context.WithTimeout(ctx, addressesTime)
		list, err := w.cfg.Read(call)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			said = ""
			w.setAddresses(list)
		case err.Error() != said:
			said = err.Error()
			w.cfg.Log.Error("the status of Ingresses stays as it is: " + said)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// setAddresses has statuses say these addresses from now on; none: they are left as they are.
func (w *IngressWriter) setAddresses(list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	want := loadBalancer(list)
	if sameAddresses(want, w.want) {
		return
	}
	w.want = want
	w.cfg.Log.Info("addresses for the status of Ingresses", zap.Strings("addresses", list))
	now := time.Now()
	for _, r := range w.all {
		r.rewrites = 0
		w.consider(r, now)
	}
}
