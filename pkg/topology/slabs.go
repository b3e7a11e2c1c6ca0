package topology

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	byteSlab   = 64 << 10
	recordSlab = 128
)

// slabs hands out the memory of output records. Nothing is ever taken back: a slab lives until the last record
// in it is gone, and a new one is started when it is used up.
type slabs struct {
	from    Records // of records, if not from here
	free    []byte
	records []kgo.Record
	scratch []byte
}

// bytes returns n bytes, zeroed and with no room to grow into; never nil, which would be null.
func (s *slabs) bytes(n int) []byte {
	if n > len(s.free) || s.free == nil {
		if n > byteSlab/4 {
			return make([]byte, n)
		}
		s.free = make([]byte, byteSlab)
	}
	b := s.free[:n:n]
	s.free = s.free[n:]
	return b
}

func (s *slabs) copy(b []byte) []byte {
	out := s.bytes(len(b))
	copy(out, b)
	return out
}

func (s *slabs) record() *kgo.Record {
	if s.from != nil {
		return s.from.NewRecord()
	}
	if len(s.records) == 0 {
		s.records = make([]kgo.Record, recordSlab)
	}
	r := &s.records[0]
	s.records = s.records[1:]
	return r
}

// encodeJSON writes v into a slab.
func (s *slabs) encodeJSON(v any) ([]byte, error) {
	var err error
	if s.scratch, err = appendJSON(s.scratch[:0], v, 0); err != nil {
		return nil, fmt.Errorf("cannot be written as JSON: %w", err)
	}
	return s.copy(s.scratch), nil
}
