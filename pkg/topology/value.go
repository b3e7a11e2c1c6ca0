package topology

// Encode writes a value as f. It takes what expressions give: nil, which is null, text, bytes, numbers, bools, lists and
// maps with text as keys.
func (f Format) Encode(v any) ([]byte, error) {
	d, err := unbox(v, f)
	if err != nil {
		return nil, err
	}
	var s slabs
	if err := d.encode(f, &s); err != nil {
		return nil, err
	}
	return d.raw, nil
}

// Decode reads what is written as f, as expressions see it. Nil is null.
func (f Format) Decode(raw []byte) (any, error) {
	d, err := decodeDatum(f, raw, true)
	if err != nil {
		return nil, err
	}
	return d.boxed(f)
}
