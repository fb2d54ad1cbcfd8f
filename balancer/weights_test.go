package balancer

import (
	"slices"
	"testing"
)

func TestWeights(t *testing.T) {
	for _, row := range []struct {
		id   string
		in   []ServiceWeight
		want []int
	}{
		{"port 8080, services 50; 1 and 50; 1: weights 256 and 256", []ServiceWeight{{50, 1}, {50, 1}}, []int{256, 256}},
		{"port 8080, services 25; 1 and 75; 1: weights 85 and 256", []ServiceWeight{{25, 1}, {75, 1}}, []int{85, 256}},
		{"port 8080, services 50; 2 and 50; 1: weights 128 and 256", []ServiceWeight{{50, 2}, {50, 1}}, []int{128, 256}},
		{"port 8080, services 50; 1: weights 1", []ServiceWeight{{50, 1}}, []int{1}},
		{"port 8080, services 50; 2: weights 1", []ServiceWeight{{50, 2}}, []int{1}},
		{"port 9090 (no match), services 50; 2: weights -", []ServiceWeight{{50, 0}}, []int{0}},
		{"port 8080, services 50; e8080+e8081 and 50; 1: weights 256 and 256", []ServiceWeight{{50, 1}, {50, 1}}, []int{256, 256}},
		{"port absent, services 50; e8080+e8081 and 50; 1: weights 128 and 256", []ServiceWeight{{50, 2}, {50, 1}}, []int{128, 256}},
		{"port absent, services 3; 5 and 256; 1: weights 1 and 256", []ServiceWeight{{3, 5}, {256, 1}}, []int{1, 256}},
		{"port port, no services: no weights", nil, []int{}},
		{"port port, services 100; 0: weights -", []ServiceWeight{{100, 0}}, []int{0}},
		{"port 8080, services 50; 2 and 0; 1: weights 1 and 0", []ServiceWeight{{50, 2}, {0, 1}}, []int{1, 0}},
		{"port 8080, services 0; 2 and 0; 1: weights 0 and 0", []ServiceWeight{{0, 2}, {0, 1}}, []int{0, 0}},
		{"port 8080, services 0; 2 and 100; 1 and 0; 1: weights 0 and 1 and 0", []ServiceWeight{{0, 2}, {100, 1}, {0, 1}}, []int{0, 1, 0}},
		{"port 8080, services 100; 0 and 100; 1: weights - and 1", []ServiceWeight{{100, 0}, {100, 1}}, []int{0, 1}},
		{"port 8080, services 20; 2 and 10; 4: weights 256 and 64", []ServiceWeight{{20, 2}, {10, 4}}, []int{256, 64}},
		{"weight 0 counts as 0", []ServiceWeight{{0, 1}, {7, 1}, {7, 1}}, []int{0, 256, 256}},
		{"weight -5 counts as 0", []ServiceWeight{{-5, 1}, {7, 1}}, []int{0, 1}},
		{"weight 1000 counts as 256", []ServiceWeight{{1000, 1}, {256, 1}, {128, 1}}, []int{256, 256, 128}},
		{"section 2, least weight", []ServiceWeight{{1, 100}, {256, 1}}, []int{1, 256}},
		{"section 2, light one", []ServiceWeight{{1, 1}, {256, 1}}, []int{1, 256}},
		{"section 2, endpoints", []ServiceWeight{{100, 1}, {100, 2}}, []int{256, 128}},
		{"section 2, absent", []ServiceWeight{{5, 0}, {7, 3}}, []int{0, 1}},
		{"section 2, three", []ServiceWeight{{3, 1}, {1, 1}, {0, 1}}, []int{256, 85, 0}},
		{"section 2, alone", []ServiceWeight{{100, 3}}, []int{1}},
	} {
		if got := Weights(row.in); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.id, got, row.want)
		}
	}
}
