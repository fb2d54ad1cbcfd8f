package cluster

import "fmt"

// Selector reads a Kubernetes selector that check, such as ParseLabels, does not refuse.
func Selector(check func(string) error) func(string) (string, error) {
	return func(s string) (string, error) {
		if err := check(s); err != nil {
			return "", fmt.Errorf("allowed: a Kubernetes selector such as type=public,env!=test: %w", err)
		}
		return s, nil
	}
}

// ParseProjectLabels is ParseLabels with * for all.
func ParseProjectLabels(text string) error {
	if text == "*" {
		return nil
	}
	return ParseLabels(text)
}

// Account reads a service account, as ParseAccount allows; "" = none.
func Account(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return text, ParseAccount(text)
}
