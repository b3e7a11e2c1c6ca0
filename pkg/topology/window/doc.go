// Package window knows the windows of time that records are aggregated in: which ones a timestamp belongs to, when they
// close, and how their bounds are written into keys. It is pure: values in, values out. All times are ms since the epoch.
//
// # Kinds
//
//   - Tumbling and hopping windows have a fixed size and begin at multiples of their advance, from 0 on. Their end is exclusive.
//   - Sliding windows of size d are those that a record at t ends ([t-d, t]) and begins behind itself ([t+1, t+1+d]), as far as
//     there are records in them. Both ends are inclusive. A record earlier than d ends [0, d].
//   - Sessions are as long as records of a key follow each other within a gap. Both ends are inclusive, and those of records.
//
// # Stream time
//
// A window is closed by stream time, the largest timestamp that an operator has seen: it takes records for a grace period
// after its end. What it needs of rows it keeps for a while longer, see Spec.Expiry.
package window
