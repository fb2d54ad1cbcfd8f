package controller

import (
	"fmt"
	"reflect"
)

// Configure has routes admitted, translated and selected by next from now on. RouterName, whether and how Ingresses and Gateways are served, and DefaultDestinationCA stay as they are, see
// SetDefaultDestinationCA. What changes by it is published as one table, and then stands in the status of the routes. It fails, and nothing
// changes, for the reasons that New does. Any goroutine may call it.
func (c *Controller) Configure(next Options) error {
	cfg := c.cfg
	cfg.Options = next
	cfg, err := cfg.complete()
	if err != nil {
		return err
	}
	if _, err := cfg.Options.selection(); err != nil {
		return fmt.Errorf("cannot select routes: %w", err)
	}
	cfg.Options.RouterName = c.cfg.Options.RouterName
	leave(c.inbox, &c.inbox.options, &cfg.Options)
	return nil
}

// Options are what routes are treated by now, without DefaultDestinationCA. Any goroutine may call it.
func (c *Controller) Options() Options { return *c.views.options.Load() }

// setOptions judges by next all routes that it may make a difference to. The owner calls it before the events that came with it.
func (s *state) setOptions(next Options) {
	before := s.cfg.Options
	next.DefaultDestinationCA, next.Ingress, next.IngressController, next.Gateways = before.DefaultDestinationCA, before.Ingress, before.IngressController, before.Gateways
	s.cfg.Options = next
	s.views.setOptions(next)
	if admission := next.admission(); !reflect.DeepEqual(admission, s.admission) {
		// What is decided follows from the objects alone, so that nothing is lost with what was decided.
		s.admission, s.claims = admission, s.cfg.Options.newClaims()
		s.allDirty()
	}
	if !reflect.DeepEqual(before.translation(), next.translation()) || !reflect.DeepEqual(before.judgement(), next.judgement()) {
		s.translator.SetDefaults(next.translation())
		s.allDirty()
	}
	if selection, err := next.selection(); err == nil { // Configure has looked
		s.selection = selection
		s.reselect("")
	}
}

// judgement is what else of the options decides about routes and their status.
func (o *Options) judgement() [7]any {
	return [...]any{o.SkipExtendedValidation, o.SkipExternalCertificate, o.KeepWithoutSecret, o.SkipUpgradeValidation, o.ForceUnservable, o.CanonicalHostname, o.AsksClients}
}

// allDirty has all routes judged and translated again.
func (s *state) allDirty() {
	for r := range s.routes.All() {
		s.judgeAgain(r)
	}
}

// origin is what decided about an option of the router.
func (o *Options) origin(flag string) string {
	if from := o.Origins[flag]; from != "" {
		return from
	}
	return flag
}
