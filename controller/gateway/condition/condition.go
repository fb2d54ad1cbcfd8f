package condition

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxMessage bounds the message of a condition in bytes, as the API does.
const MaxMessage = 32768

// List is the conditions of one object as they are made, all for one generation of it. They have no times.
type List struct {
	Generation int64
	Conditions []metav1.Condition
}

// Set puts a condition in the place of the one of its type.
func (l *List) Set(kind string, status metav1.ConditionStatus, reason, message string) {
	if len(message) > MaxMessage {
		message = message[:MaxMessage]
	}
	c := metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: l.Generation}
	for i := range l.Conditions {
		if l.Conditions[i].Type == kind {
			l.Conditions[i] = c
			return
		}
	}
	l.Conditions = append(l.Conditions, c)
}

// True sets a condition that holds.
func (l *List) True(kind, reason, message string) { l.Set(kind, metav1.ConditionTrue, reason, message) }

// False sets a condition that does not hold.
func (l *List) False(kind, reason, message string) {
	l.Set(kind, metav1.ConditionFalse, reason, message)
}

// Is reports whether a condition is there and holds.
func (l *List) Is(kind string) bool {
	for i := range l.Conditions {
		if l.Conditions[i].Type == kind {
			return l.Conditions[i].Status == metav1.ConditionTrue
		}
	}
	return false
}
