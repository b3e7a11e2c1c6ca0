// Package cases runs test cases that are written as YAML beside a topology: for words.yaml in words_test.yaml.
//
//	cases:
//	  - name: words are counted in any case
//	    inputs:
//	      - {topic: lines, value: To be or not to be, ts: 1s}
//	      - {topic: lines, value: BE, ts: 2s}
//	    outputs:
//	      counts:
//	        - {key: to, value: 1, ts: 1s}
//	        ...
//	    tables:
//	      counts: {to: 2, be: 3, or: 1, not: 1}
//
// Each case starts from nothing. Its inputs are processed one at a time, each to its end (see topologytest); then what is
// expected is compared: outputs with all that was written to a topic, in order, of each record only the fields that are given;
// tables with the last value of each key of a topic, without those that are null; stores with what a store holds.
//
// Keys and values are written as JSON has them; where a topic has text, any scalar is taken as the text that stands there.
package cases
