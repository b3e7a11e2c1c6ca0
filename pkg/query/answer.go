package query

import "encoding/json"

// StoreInfo is a store of the application.
type StoreInfo struct {
	Name       string `json:"name"`
	Key        string `json:"key"`              // format
	Value      string `json:"value"`            // format
	Window     string `json:"window,omitempty"` // of keys, in words; "": they have none
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
	*Window
}

// Window is that of a row, in ms since the epoch.
type Window struct {
	Start int64 `json:"window_start"`
	End   int64 `json:"window_end"`
}

// Answer is a key's row, where it has no more than one.
type Answer struct {
	Origin
	Row
}

// RangeRow is a row in a range.
type RangeRow struct {
	Row
	Raw []byte `json:"raw_key"` // its bytes, by which ranges are ordered
}

// Range is the answer for a range of one partition, and for the windows of a key.
type Range struct {
	Origin
	Rows []RangeRow `json:"rows"`
	More bool       `json:"more"`           // a bound was reached, and there may be further rows
	Next []byte     `json:"next,omitempty"` // if so, the raw key to go on after
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
