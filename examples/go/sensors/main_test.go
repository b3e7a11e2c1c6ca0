package main

import (
	"errors"
	"reflect"
	"testing"

	"github.com/streamworker/streamworker/pkg/streams"
	"github.com/streamworker/streamworker/pkg/streams/streamstest"
)

func TestMinutes(t *testing.T) {
	d := streamstest.Start(t, build)
	sites := streamstest.NewInput(d, "sites", streams.String, streams.String)
	in := streamstest.NewInput(d, "readings", streams.String, streams.JSON[reading]())
	err := errors.Join(
		sites.Pipe("s1", "roof", 0),
		in.Pipe("s1", reading{20}, 1_000), in.Pipe("s1", reading{22}, 59_000), in.Pipe("s2", reading{5}, 2_000),
		in.Pipe("s1", reading{24}, 61_000), in.Pipe("s1", reading{27}, 58_000), in.Pipe("s1", reading{0}, 65_000),
	)
	if err != nil {
		t.Fatal(err)
	}
	got, err := streamstest.Read(d, "minutes", streams.String, streams.JSON[minute]())
	want := []streamstest.Output[string, minute]{
		{Key: "s1", Value: minute{"roof", 0, 23}, Timestamp: 59_000},
		{Key: "s2", Value: minute{"", 0, 5}, Timestamp: 2_000},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}
