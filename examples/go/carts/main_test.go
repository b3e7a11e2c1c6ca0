package main

import (
	"reflect"
	"testing"
	"time"

	"github.com/streamworker/streamworker/pkg/streams"
	"github.com/streamworker/streamworker/pkg/streams/streamstest"
)

func TestReminders(t *testing.T) {
	d := streamstest.Start(t, build)
	in := streamstest.NewInput(d, "events", streams.String, streams.JSON[event]())
	minute := time.Minute.Milliseconds()
	for _, e := range []struct {
		user string
		event
		at int64
	}{
		{"ann", event{"put", "tea"}, 0},
		{"bob", event{"put", "milk"}, 1},
		{"ann", event{"put", "cups"}, 2},
		{"bob", event{"checkout", ""}, 3},
		{"eve", event{"steal", "tea"}, 4},
		{"eve", event{"put", "salt"}, 61},
		{"eve", event{"put", "oil"}, 62},
	} {
		if err := in.Pipe(e.user, e.event, e.at*minute); err != nil {
			t.Fatal(err)
		}
	}
	got, err := streamstest.Read(d, "reminders", streams.String, streams.JSON[cart]())
	want := []streamstest.Output[string, cart]{{Key: "ann", Value: cart{[]string{"tea", "cups"}, 2 * minute}, Timestamp: 62 * minute}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if n := len(d.Written("app-dead-letter")); n != 1 {
		t.Errorf("%d dead letters, want that of the unknown action", n)
	}
}
