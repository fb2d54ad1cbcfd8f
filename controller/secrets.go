package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"turnout/controller/source"
)

// secret is what is known about one secret name, whether or not it exists.
//
// Where secrets come on demand it is there from the moment the first route refers to
// it, when it is asked for, until the last one no longer does, when it is forgotten.
type secret struct {
	key    source.Key
	object *corev1.Secret // nil = there is none, or it cannot be had
	err    error          // why it cannot be had
	known  bool           // an event has delivered the above
	late   bool           // none came in time
	asked  time.Time      // when it was asked for
	users  map[*route]struct{}

	gateways bool // an object of the Gateway API refers to it, too
}

// secretEvent takes over what a secret is now.
func (s *state) secretEvent(e *source.Event) {
	v := s.secrets[e.Key]
	if v == nil {
		if s.cfg.Secrets != nil {
			return // nobody refers to it any more
		}
		v = &secret{key: e.Key}
		s.secrets[e.Key] = v
	}
	v.object, _ = e.Object.(*corev1.Secret)
	v.err, v.known, v.late = e.Err, true, false
	delete(s.unanswered, v)
	for r := range v.users {
		s.judgeAgain(r)
	}
	s.gatewaySecret(v)
	s.unused[v] = struct{}{}
}

// refer makes a route the user of the secret it refers to, and of no other. A route
// that cannot be admitted whatever its secret holds refers to none. One that is kept
// out by another route does, so that it can take its place without a gap.
func (s *state) refer(r *route) {
	s.referAlso(r)
	name := ""
	if r.refused == nil {
		name = s.secretName(r)
	}
	if name == "" {
		s.useSecret(r, nil)
		return
	}
	s.useSecret(r, s.secretOf(source.Key{Namespace: r.key.Namespace, Name: name}))
}

// useSecret makes a route the user of a secret, nil for none, and of no other.
func (s *state) useSecret(r *route, v *secret) {
	before := r.secret
	if before == v {
		return
	}
	r.secret, r.tls = v, &s.plain
	s.enterUser(r, v)
	s.leaveUser(r, before)
}

// askAgain has a secret that cannot be had asked for again, because a route that refers to it has changed.
func (s *state) askAgain(v *secret) {
	if v != nil && v.err != nil && s.cfg.Secrets != nil {
		s.cfg.Secrets.Again(v.key)
	}
}

// secretOf returns what is known about a secret; it is asked for if that is nothing.
func (s *state) secretOf(key source.Key) *secret {
	v := s.secrets[key]
	if v != nil {
		return v
	}
	v = &secret{key: key, known: s.cfg.Secrets == nil}
	s.secrets[key] = v
	if !v.known {
		v.asked = time.Now()
		s.unanswered[v] = struct{}{}
		s.cfg.Secrets.Watch(key)
	}
	return v
}

// dropSecrets forgets the secrets that nobody needs to know. It is done last, because
// what one route no longer refers to may be what its successor does.
func (s *state) dropSecrets() {
	for v := range s.unused {
		if len(v.users) > 0 || v.gateways || s.cfg.Secrets == nil && v.object != nil {
			continue
		}
		delete(s.secrets, v.key)
		delete(s.unanswered, v)
		if s.cfg.Secrets != nil {
			s.cfg.Secrets.Forget(v.key)
		}
	}
	s.unused = emptied(s.unused)
}

// due returns when the first secret that has not come is given up, false for never.
func (s *state) due() (time.Time, bool) {
	var first time.Time
	for v := range s.unanswered {
		if due := v.asked.Add(s.cfg.SecretWait); first.IsZero() || due.Before(first) {
			first = due
		}
	}
	return first, !first.IsZero()
}

// giveUp no longer waits for secrets that were due by now.
func (s *state) giveUp(now time.Time) {
	for v := range s.unanswered {
		if v.asked.Add(s.cfg.SecretWait).After(now) {
			continue
		}
		delete(s.unanswered, v)
		v.late = true
		for r := range v.users {
			s.judgeAgain(r)
		}
	}
}
