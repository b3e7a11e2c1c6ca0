package streams

// Ranking says which values of a key rank highest.
type Ranking[K, V any] struct {
	N  int                                 // how many are kept, 1 to 10000
	By func(Record[K, V]) (float64, error) // what they are ranked by, highest first; of equal ones the older one
	ID func(Record[K, V]) (string, error)  // of values with the same one only the newest counts; nil: each counts
}

// TopN keeps the values of each key that rank highest, as a list, in a store of that name. They are kept as encoding/json writes them:
// a value with a Custom serde is not read as it was written.
func TopN[K, V any](g *Group[K, V], store string, r Ranking[K, V], emit ...Emit) *Table[K, []V] {
	f := fields{{"n", r.N}, {"by", g.n.attach(value(g.reader, Float, r.By), nil)}}
	if r.ID != nil {
		f = f.with("id", g.n.attach(value(g.reader, String, r.ID), nil))
	}
	return &Table[K, []V]{g.aggregate("top_n", store, emit, f), reader[K, []V]{g.key, JSON[[]V]()}}
}
