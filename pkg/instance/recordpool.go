package instance

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recordPool lets the input client use its records again once tasks have processed them (kgo.PoolRecords). The bytes of
// keys and values are not pooled: output may share them.
type recordPool struct{ batches sync.Pool }

// GetRecords returns room for n records, all of them zero.
func (p *recordPool) GetRecords(n int) []kgo.Record {
	if b, ok := p.batches.Get().(*[]kgo.Record); ok && cap(*b) >= n {
		return *b
	}
	return make([]kgo.Record, n)
}

// PutRecords takes a batch back, of which each record was recycled.
func (p *recordPool) PutRecords(b []kgo.Record) { p.batches.Put(&b) }
