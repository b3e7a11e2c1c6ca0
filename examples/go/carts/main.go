// Command carts reminds users of things in their cart that they have not bought for an hour. A custom processor keeps the
// carts, and a timer by stream time looks for old ones.
package main

import (
	"fmt"
	"time"

	"github.com/streamworker/streamworker/pkg/app"
	"github.com/streamworker/streamworker/pkg/streams"
)

func main() { app.Main(build) }

// event is what a user does: put an item into the cart, or check out.
type event struct {
	Action string `json:"action"`
	Item   string `json:"item,omitempty"`
}

// cart is what a user has not bought yet.
type cart struct {
	Items   []string `json:"items"`
	Touched int64    `json:"touched"` // ms since the epoch
}

const patience = time.Hour

func build(b *streams.Builder) {
	events := streams.From(b, "events", streams.String, streams.JSON[event](), streams.DeadLetter(""))
	streams.Process(events, "remind", streams.String, streams.JSON[cart](), remind, streams.KeepsKey()).To("reminders")
}

func remind(c *streams.Context[string, cart]) func(streams.Record[string, event]) error {
	carts := streams.NewStore(c, "carts", streams.String, streams.JSON[cart]())
	c.EveryStreamTime(time.Minute, func(now int64) error {
		for user, one := range carts.All() {
			if now-one.Touched >= patience.Milliseconds() {
				c.Forward(user, one)
				carts.Delete(user)
			}
		}
		return nil
	})
	return func(r streams.Record[string, event]) error {
		switch r.Value.Action {
		case "put":
			one, _ := carts.Get(r.Key)
			carts.Put(r.Key, cart{Items: append(one.Items, r.Value.Item), Touched: r.Timestamp})
		case "checkout":
			carts.Delete(r.Key)
		default:
			return fmt.Errorf("unknown action %q", r.Value.Action)
		}
		return nil
	}
}
