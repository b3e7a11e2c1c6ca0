package instance

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/tasks"
)

// A manager whose loop does not go round is no longer live, unless the instance stops anyway.
func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := New(&config.Config{InstanceID: "a"}, Options{})
		time.Sleep(time.Hour)
		if !i.Live() {
			t.Error("an instance that starts is not live")
		}
		i.parts.Store(&parts{manager: tasks.NewManager(tasks.Config{})})
		time.Sleep(liveLimit - time.Millisecond)
		if !i.Live() {
			t.Error("not live before the limit")
		}
		time.Sleep(time.Millisecond)
		if i.Live() {
			t.Error("live although its manager does nothing")
		}
		i.Stop(config.Keep)
		if !i.Live() {
			t.Error("an instance that stops is not live")
		}
	})
}
