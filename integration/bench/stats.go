package main

import "slices"

// median of values, which it leaves as they are; of an even number the mean of the two in the middle; 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// spread is what runs of one kind gave for a figure.
type spread struct {
	Median  float64 `json:"median"`
	Min     float64 `json:"min"`
	Max     float64 `json:"max"`
	Runs    int     `json:"runs"`
	Variant string  `json:"variant,omitempty"` // the best of several settings
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	return spread{Median: median(values), Min: slices.Min(values), Max: slices.Max(values), Runs: len(values)}
}

// advantage says how many times better b is than a; 0: that cannot be said.
func advantage(a, b float64, higherIsBetter bool) float64 {
	if !higherIsBetter {
		a, b = b, a
	}
	if a <= 0 || b <= 0 {
		return 0
	}
	return b / a
}
