package state

import (
	"bytes"
	"slices"
)

// Changes are the writes of a task between two freezes: per store the last value of each key written.
// They are immutable, so keys and values may be kept, for example by records on their way to a changelog.
type Changes struct {
	number uint32 // of the freeze
	stores []storeChanges
}

type storeChanges struct {
	data []byte // keys and values one after the other
	list []change
}

// change is a key at data[at:] followed by its value.
type change struct {
	at       int
	keyLen   int
	valueLen int // tombstone: a key without a value
}

const tombstone = -1

func (c *storeChanges) key(ch change) []byte {
	end := ch.at + ch.keyLen
	return c.data[ch.at:end:end]
}

func (c *storeChanges) value(ch change) []byte {
	if ch.valueLen == tombstone {
		return nil
	}
	from := ch.at + ch.keyLen
	to := from + ch.valueLen
	return c.data[from:to:to]
}

// Len returns the number of changed keys of all stores.
func (c *Changes) Len() int {
	n := 0
	for i := range c.stores {
		n += len(c.stores[i].list)
	}
	return n
}

// Each calls f for every changed key, store by store in order of the key. A nil value is a tombstone.
func (c *Changes) Each(f func(store int, key, value []byte)) {
	for i := range c.stores {
		for key, value := range c.stores[i].each {
			f(i, key, value)
		}
	}
}

func (c *storeChanges) each(yield func(key, value []byte) bool) {
	for _, ch := range c.list {
		if !yield(c.key(ch), c.value(ch)) {
			return
		}
	}
}

// freeze moves the dirty rows into changes; the rows stay as frozen ones.
func (t *rows) freeze(number uint32) storeChanges {
	size := 0
	for _, l := range t.dirty {
		r := t.at(l)
		size += r.keyLen() + r.valueLen()
	}
	c := storeChanges{data: make([]byte, 0, size), list: make([]change, 0, len(t.dirty))}
	for _, l := range t.dirty {
		r := t.at(l)
		ch := change{at: len(c.data), keyLen: r.keyLen(), valueLen: tombstone}
		c.data = append(c.data, r.key()...)
		if r.is(flagPresent) {
			ch.valueLen = r.valueLen()
			c.data = append(c.data, r.value()...)
		}
		c.list = append(c.list, ch)
		r.setHead(r.head() &^ flagDirty)
		r.setTag(number)
	}
	t.dirty = t.dirty[:0]
	if t.sorted != nil {
		t.sorted.clear()
	}
	slices.SortFunc(c.list, func(a, b change) int { return bytes.Compare(c.key(a), c.key(b)) })
	return c
}
