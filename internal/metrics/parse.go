package metrics

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"turnout/internal/option"
)

// mostHistograms bounds how many routes have a histogram of their own for each of the two reasons.
const mostHistograms = 1000

// ParseTopRoutes reads Config.TopRoutes.
func ParseTopRoutes(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n > mostHistograms {
		return 0, fmt.Errorf("allowed: a whole number from 0 to %d", mostHistograms)
	}
	return int(n), nil
}

// ParseRoutes reads Config.Routes, separated by commas.
func ParseRoutes(s string) ([]string, error) {
	list := option.ParseList(s)
	for _, route := range list {
		if namespace, name, ok := strings.Cut(route, "/"); !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("%q is no route, allowed: NAMESPACE/NAME, separated by commas", route)
		}
	}
	if len(list) > mostHistograms {
		return nil, fmt.Errorf("allowed: at most %d routes", mostHistograms)
	}
	return list, nil
}

// ParseThreshold reads Config.ServerThreshold; -1 stands for 0, which lists none.
func ParseThreshold(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, errors.New("allowed: a whole number from 0")
	}
	if n == 0 {
		return -1, nil
	}
	return int(n), nil
}
