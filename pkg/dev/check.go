package dev

import (
	"cmp"
	"maps"
	"slices"
)

// wrongCount is a word whose count is not the generator's.
type wrongCount struct {
	word       string
	got, wants int64
}

// compare lists the words whose last count is not the expected one, the most common first. A word that was never
// counted has the count 0.
func compare(expected, got map[string]int64) []wrongCount {
	var wrong []wrongCount
	for word, n := range expected {
		if got[word] != n {
			wrong = append(wrong, wrongCount{word: word, got: got[word], wants: n})
		}
	}
	for _, word := range slices.Sorted(maps.Keys(got)) {
		if _, ok := expected[word]; !ok {
			wrong = append(wrong, wrongCount{word: word, got: got[word]})
		}
	}
	slices.SortFunc(wrong, func(a, b wrongCount) int { return cmp.Or(cmp.Compare(b.wants, a.wants), cmp.Compare(a.word, b.word)) })
	return wrong
}
