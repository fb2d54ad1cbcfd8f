package member

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation"

	"turnout/controller/shard/api"
)

// ParseName reads the name of a Router.
func ParseName(s string) (string, error) {
	if s != "" && (len(s) > 63 || len(validation.IsDNS1123Subdomain(s)) > 0) {
		return "", errors.New("allowed: the name of a Router, up to 63 lower-case letters, digits, dashes and dots")
	}
	return s, nil
}

// Labels is the selector of the Routes that a replica of a Router reads: those that selector selects, "" for all, and that are bound to router. With
// router "" it is selector.
func Labels(selector, router string) string {
	switch {
	case router == "":
		return selector
	case selector == "":
		return api.LabelPrefix + router
	}
	return selector + "," + api.LabelPrefix + router
}
