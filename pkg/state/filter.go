package state

import "sync/atomic"

// filter is a set of keys that only grows and may say of a key that it is in it though it is not: what it
// does not hold does not exist. It holds every key of its store from the time on when that was empty.
//
// It is a list of blocked Bloom filters, each four times as large as the one before.
type filter struct {
	layers [][]block
	room   int // keys that still fit into the last layer
	budget *budget
	size   atomic.Int64 // bytes, counted in the budget
}

type block [8]uint64

const (
	blockBits   = 512
	bitsPerKey  = 12
	probes      = 7
	firstLayer  = 4096 // keys
	layerGrowth = 4
	// filterShare is the part of the budget that filters may take; a store whose filter does not fit goes
	// without.
	filterShare = 4
)

func newFilter(b *budget) *filter { return &filter{budget: b} }

// has tells whether the key with this hash may be in the set.
func (f *filter) has(hash uint64) bool {
	mix := mixed(hash)
	for i := len(f.layers) - 1; i >= 0; i-- { // the last one has most of them
		b := blockOf(f.layers[i], hash)
		found := true
		for p, m := 0, mix; p < probes && found; p, m = p+1, m/blockBits {
			found = b[m%blockBits/64]&(1<<(m%64)) != 0
		}
		if found {
			return true
		}
	}
	return false
}

// add puts a key in. It returns false if there is no room; the filter is of no use then.
func (f *filter) add(hash uint64) bool {
	if f.has(hash) {
		return true
	}
	if f.room == 0 && !f.grow() {
		return false
	}
	f.room--
	b := blockOf(f.layers[len(f.layers)-1], hash)
	for p, m := 0, mixed(hash); p < probes; p, m = p+1, m/blockBits {
		b[m%blockBits/64] |= 1 << (m % 64)
	}
	return true
}

func (f *filter) grow() bool {
	keys := firstLayer
	for range f.layers {
		keys *= layerGrowth
	}
	layer := keys * bitsPerKey / blockBits
	size := int64(layer * blockBits / 8)
	if f.size.Load()+size > f.budget.limit/filterShare/max(1, f.budget.tables.Load()) {
		return false
	}
	f.layers, f.room = append(f.layers, make([]block, layer)), keys
	f.size.Add(size)
	f.budget.used.Add(size)
	return true
}

// release gives the filter's part of the budget back; the filter is not used after that.
func (f *filter) release() { f.budget.used.Add(-f.size.Swap(0)) }

func blockOf(layer []block, hash uint64) *block {
	return &layer[hash>>32*uint64(len(layer))>>32]
}

// mixed spreads the hash over the bits that choose within a block, apart from those that chose the block.
func mixed(hash uint64) uint64 {
	hash ^= hash >> 33
	hash *= 0xff51afd7ed558ccd
	return hash ^ hash>>33
}
