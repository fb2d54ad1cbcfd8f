// Package convert is the command turnout ingress-to-route: its options and its metrics, around a converter.
package convert

import (
	"context"

	"turnout/controller/ingress"
	"turnout/controller/ingress/converter"
	"turnout/controller/source/cluster"
	"turnout/internal/admin"
	"turnout/internal/elected"
	"turnout/internal/metrics"
	"turnout/internal/option"
)

// Options are those of the command.
type Options struct {
	elected.Options

	namespace       string
	classController string
}

// Table are the options, bound to o.
func (o *Options) Table() []option.Option {
	return o.Options.Table("Conversion", converter.LeaseName, "converters", []option.Option{
		{Flag: "namespace", Short: "n", Value: "NAME", Set: option.Into(&o.namespace, cluster.ParseNamespace), Help: "convert the Ingresses of this namespace only"},
		{Flag: "class-controller", Def: "openshift.io/ingress-to-route", Value: "DOMAIN/NAME", Set: option.Into(&o.classController, option.Checked(ingress.CheckController)),
			Help: "spec.controller of the IngressClasses whose Ingresses are converted, besides those that name no class"},
	})
}

// Run converts until a signal.
func Run(ctx context.Context, call elected.Call) error {
	o := new(Options)
	return o.Options.Run(ctx, call, o.Table(), o.work)
}

func (o *Options) work() (elected.Work, error) {
	o.Cluster.Namespace = o.namespace
	c, err := converter.New(converter.Config{Cluster: o.Cluster, Identity: o.Identity, Namespace: o.Options.Namespace, ClassController: o.classController})
	if err != nil {
		return elected.Work{}, err
	}
	return elected.Work{Name: "ingress-to-route", Run: c.Run, Show: func(cfg *admin.Config) (err error) {
		cfg.Metrics, err = metrics.NewConverter(func() metrics.Converter { return counted(c.Stats()) })
		return err
	}}, nil
}

// counted is what metrics show of a converter.
func counted(s *converter.Stats) metrics.Converter {
	m := metrics.Converter{
		Leading: s.Leading, Ingresses: s.Ingresses, Routes: s.Routes, Failing: s.Failing,
		Created: s.Created, Updated: s.Updated, Deleted: s.Deleted, Failed: s.Failed,
	}
	for _, o := range s.Classless {
		m.Classless = append(m.Classless, metrics.ConvertedObject(o))
	}
	for _, o := range s.Unmanaged {
		m.Unmanaged = append(m.Unmanaged, metrics.ConvertedObject(o))
	}
	return m
}
