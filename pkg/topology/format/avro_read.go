package format

import (
	"encoding/base64"
	"encoding/hex"
	"time"

	"github.com/twmb/avro"
)

// fromAvro turns what the library reads into the values of expressions.
var fromAvro = []avro.SchemaOpt{
	avro.CustomType{AvroType: "int", Decode: func(v any, n *avro.SchemaNode) (any, error) {
		if i := v.(int32); n.LogicalType == "date" {
			return dateText(i), nil
		} else {
			return int(i), nil
		}
	}},
	avro.CustomType{AvroType: "long", Decode: func(v any, _ *avro.SchemaNode) (any, error) { return int(v.(int64)), nil }},
	avro.CustomType{AvroType: "float", Decode: func(v any, _ *avro.SchemaNode) (any, error) { return float64(v.(float32)), nil }},
	avro.CustomType{AvroType: "bytes", Decode: readAvroBytes},
	avro.CustomType{AvroType: "fixed", Decode: readAvroBytes},
}

func readAvroBytes(v any, n *avro.SchemaNode) (any, error) {
	switch b := v.([]byte); {
	case n.LogicalType == "decimal":
		return decimalText(b, n.Scale), nil
	case n.LogicalType == "uuid" && len(b) == 16:
		return uuidText(b), nil
	default:
		return base64.StdEncoding.EncodeToString(b), nil
	}
}

const day = 24 * time.Hour

func dateText(days int32) string {
	return time.Unix(int64(days)*int64(day/time.Second), 0).UTC().Format(time.DateOnly)
}

func uuidText(b []byte) string {
	text := hex.EncodeToString(b)
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}
