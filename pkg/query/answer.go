package query

import "encoding/json"

// StoreInfo is a store of the application.
type StoreInfo struct {
	Name       string `json:"name"`
	Key        string `json:"key"`   // format
	Value      string `json:"value"` // format
	Partitions int32  `json:"partitions"`
}

// Stores is the answer to the question which stores there are.
type Stores struct {
	Instance string      `json:"instance"` // that answers
	Stores   []StoreInfo `json:"stores"`
}

// Origin says where an answer is from.
type Origin struct {
	Store    string `json:"store"`
	Instance string `json:"instance"`
	Task     string `json:"task"`
	Role     string `json:"role"` // active, learner or standby
	Lag      int64  `json:"lag"`  // of a copy: changelog records behind; -1: not known yet
}

// Row is a key with what is committed for it.
type Row struct {
	Key       json.RawMessage `json:"key"`
	Value     json.RawMessage `json:"value"`
	Timestamp int64           `json:"timestamp"` // ms since the epoch
}

// Answer is a key's row.
type Answer struct {
	Origin
	Row
}

// RangeRow is a row in a range.
type RangeRow struct {
	Row
	Raw []byte `json:"raw_key"` // its bytes, by which ranges are ordered
}

// Range is the answer for a range of one partition.
type Range struct {
	Origin
	Rows []RangeRow `json:"rows"`
	More bool       `json:"more"` // the limit was reached: go on after the last raw key
}

// Code is the kind of a failure.
type Code string

// The codes.
const (
	CodeBadRequest   Code = "bad_request"
	CodeUnknownStore Code = "unknown_store" // Stores are those that there are
	CodeNoKey        Code = "no_key"        // nothing is committed for the key
	CodeElsewhere    Code = "elsewhere"     // Owner runs the task, or has a copy
	CodeMoving       Code = "moving"        // nobody can be read at the moment: ask again
	CodeBusy         Code = "busy"          // too many scans at one time: ask again
	CodeBroken       Code = "broken"        // what is stored cannot be read
)

// Failure is the body of every answer that is none.
type Failure struct {
	Message  string   `json:"error"`
	Code     Code     `json:"code"`
	Instance string   `json:"instance"`         // that answers
	Task     string   `json:"task,omitempty"`   // that has the key
	Owner    string   `json:"owner,omitempty"`  // CodeElsewhere: the instance to ask
	Stores   []string `json:"stores,omitempty"` // CodeUnknownStore
}

// Error is the message.
func (f *Failure) Error() string { return f.Message }
