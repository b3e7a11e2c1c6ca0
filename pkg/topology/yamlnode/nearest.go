package yamlnode

import "strings"

// Nearest returns the candidate that name was most likely meant to be, or "" if none is near.
func Nearest(name string, candidates []string) string {
	best, bestDistance := "", max(2, len([]rune(name))/3+1)
	for _, c := range candidates {
		if d := distance(strings.ToLower(name), strings.ToLower(c)); d < bestDistance && d < min(len(c), len(name)) {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the number of inserted, deleted, replaced or swapped neighbouring characters between a and b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last := make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		row := make([]int, len(y)+1)
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(y)]
}
