// Package format reads and writes the formats of keys and values that have columns or a schema: CSV, Avro and Protobuf.
//
// A Codec turns bytes into the values that expressions see, and back. These are the values of JSON: nil, bool, int, float64,
// string, []any and map[string]any. What JSON has no value for is a text that loses nothing:
//
//   - bytes: base64
//   - a decimal number of Avro: its digits, e.g. 12.50
//   - a date of Avro: 2006-01-02; a uuid: its usual form
//   - a whole number above the largest int, which Protobuf's uint64 may have: its digits
//   - what Protobuf's own JSON writes as text: timestamps, durations, field masks
//
// Avro and Protobuf are framed as Confluent's serializers do it: a zero byte, the id of the schema in 4 bytes, for
// Protobuf the place of the message in its file, then the data. Schemas come from a Registry.
//
// An error of a Codec is one of the bytes or the value, and names the field, unless it is an *Unavailable: then the schema could not be asked
// for, and the record may be as good as any.
package format
