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
		{"C667", []ServiceWeight{{50, 1}, {50, 1}}, []int{256, 256}},
		{"C668", []ServiceWeight{{25, 1}, {75, 1}}, []int{85, 256}},
		{"C669", []ServiceWeight{{50, 2}, {50, 1}}, []int{128, 256}},
		{"C671", []ServiceWeight{{50, 1}}, []int{1}},
		{"C672", []ServiceWeight{{50, 2}}, []int{1}},
		{"C673", []ServiceWeight{{50, 0}}, []int{0}},
		{"C674", []ServiceWeight{{50, 1}, {50, 1}}, []int{256, 256}},
		{"C676", []ServiceWeight{{50, 2}, {50, 1}}, []int{128, 256}},
		{"C677", []ServiceWeight{{3, 5}, {256, 1}}, []int{1, 256}},
		{"C678", nil, []int{}},
		{"C679", []ServiceWeight{{100, 0}}, []int{0}},
		{"C681", []ServiceWeight{{50, 2}, {0, 1}}, []int{1, 0}},
		{"C682", []ServiceWeight{{0, 2}, {0, 1}}, []int{0, 0}},
		{"C683", []ServiceWeight{{0, 2}, {100, 1}, {0, 1}}, []int{0, 1, 0}},
		{"C684", []ServiceWeight{{100, 0}, {100, 1}}, []int{0, 1}},
		{"C686", []ServiceWeight{{20, 2}, {10, 4}}, []int{256, 64}},
		{"C688", []ServiceWeight{{0, 1}, {7, 1}, {7, 1}}, []int{0, 256, 256}},
		{"C689", []ServiceWeight{{-5, 1}, {7, 1}}, []int{0, 1}},
		{"C691", []ServiceWeight{{1000, 1}, {256, 1}, {128, 1}}, []int{256, 256, 128}},
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
