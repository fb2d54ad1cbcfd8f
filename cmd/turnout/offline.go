package main

import (
	"fmt"
	"os"

	"go.uber.org/zap"

	"turnout/internal/offline"
)

// offlineConfig is what explain and validate read of o.
func (o *options) offlineConfig() (cfg offline.Config, err error) {
	cfg = offline.Config{Options: o.controllerOptions(), Manifests: []string{o.manifests}, Selects: o.selects()}
	if o.cluster {
		c := o.clusterConfig(zap.NewNop(), nil, nil)
		cfg.Cluster = &c
	}
	if o.destinationCAPath != "" {
		if cfg.Options.DefaultDestinationCA, err = os.ReadFile(o.destinationCAPath); err != nil {
			return cfg, fmt.Errorf("cannot load default destination CA: %w", err)
		}
	}
	return cfg, nil
}
