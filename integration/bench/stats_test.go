package main

import "testing"

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{7}, 7},
		{[]float64{9, 1}, 5},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		first := append([]float64(nil), test.values...)
		if got := median(test.values); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.values, got, test.want)
		}
		for i := range first {
			if test.values[i] != first[i] {
				t.Errorf("median has changed its argument to %v", test.values)
			}
		}
	}
}

func TestAdvantage(t *testing.T) {
	for _, test := range []struct {
		peer, worker float64
		higher       bool
		want         float64
	}{
		{100, 500, true, 5},
		{100, 50, true, 0.5},
		{100, 50, false, 2},
		{100, 400, false, 0.25},
		{0, 50, true, 0},
		{100, 0, false, 0},
	} {
		if got := advantage(test.peer, test.worker, test.higher); got != test.want {
			t.Errorf("advantage(%v, %v, %v) = %v, want %v", test.peer, test.worker, test.higher, got, test.want)
		}
	}
}
