package topology

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

func checkJSON(raw []byte) error {
	if json.Valid(raw) {
		return nil
	}
	_, err := decodeJSON(raw)
	return err
}

// decodeJSON reads one JSON value: whole numbers that fit 64 bits as int, other numbers as float64.
func decodeJSON(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not valid JSON: something follows the first value")
	}
	return numbers(v)
}

// numbers replaces the json.Numbers in v.
func numbers(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		if n, notInt := strconv.ParseInt(string(v), 10, 64); notInt == nil {
			return int(n), nil
		}
		return v.Float64()
	case []any:
		for i := range v {
			if v[i], err = numbers(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k, item := range v {
			if v[k], err = numbers(item); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
