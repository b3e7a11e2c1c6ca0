package instance

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/state"
	"github.com/streamworker/streamworker/pkg/topics"
	"github.com/streamworker/streamworker/pkg/topology"
)

// evolution compares the topology with the one that the application has run before, and with what other instances run.
//
// The definition of each store is recorded in the control topic with the id of the changelog, because rows of a former definition are
// in that topic, wherever local state is. A changelog that is made anew has none.
type evolution struct {
	cfg *config.Config
	id  string // of the instance
	log *slog.Logger
	lay *layout
	bus *control.Bus
	now func() time.Time
}

// repeatAfter is the age at which records of definitions are written again. The control topic keeps them for a week.
const repeatAfter = 24 * time.Hour

// check returns ErrChanged, with all reasons, if this instance must not run. Otherwise definitions are recorded when it returns.
func (e *evolution) check(ctx context.Context, cl *kgo.Client, local []state.StoredStore) error {
	recorded, err := e.bus.ReadStores(ctx)
	if err != nil {
		return fmt.Errorf("reading the definitions of stores: %w", err)
	}
	statuses, err := e.bus.ReadStatuses(ctx)
	if err != nil {
		return fmt.Errorf("reading what other instances run: %w", err)
	}
	stores := e.stores()
	problems := append(redefined(stores, recorded, local), regrouped(e.cfg.Topology, e.others(statuses))...)
	if len(problems) > 0 {
		return fmt.Errorf("%w: %w", ErrChanged, errors.Join(problems...))
	}
	e.tellLeft(ctx, cl, stores, recorded)
	return e.record(ctx, stores, recorded)
}

// stores are the records of this topology.
func (e *evolution) stores() []control.Store {
	var out []control.Store
	for _, sub := range e.lay.tasks {
		for _, s := range sub.Stores {
			out = append(out, control.Store{
				Name: s.Name, Changelog: s.Changelog, TopicID: hex.EncodeToString(s.TopicID[:]), Definition: s.Definition,
				By: e.id, AtMs: e.now().UnixMilli(),
			})
		}
	}
	return out
}

// redefined finds the stores whose changelog is of another definition, by the record of it or by local state.
func redefined(stores, recorded []control.Store, local []state.StoredStore) (problems []error) {
	for _, s := range stores {
		was := ""
		for _, l := range local {
			if l.Store == s.Name && hex.EncodeToString(l.TopicID[:]) == s.TopicID && l.Definition != "" && l.Definition != s.Definition {
				was = l.Definition
			}
		}
		if r := find(recorded, s.Name); r != nil && r.TopicID == s.TopicID && r.Definition != s.Definition {
			was = r.Definition
		}
		if was == "" {
			continue
		}
		problems = append(problems, fmt.Errorf("store %s has another definition than what is in its changelog %s (%s): "+
			"give the store a new name, and it begins empty beside the former one; or stop all instances and empty it by: streamworker reset --store %s; or take the change back",
			s.Name, s.Changelog, topology.Redefined(was, s.Definition), s.Name))
	}
	return problems
}

func find(stores []control.Store, name string) *control.Store {
	if i := slices.IndexFunc(stores, func(s control.Store) bool { return s.Name == name }); i >= 0 {
		return &stores[i]
	}
	return nil
}

// others are the statuses of the other instances that are alive.
func (e *evolution) others(statuses []control.Status) []control.Status {
	return slices.DeleteFunc(statuses, func(s control.Status) bool {
		return s.Instance == e.id || s.Stale(e.now()) || s.Left != "" || s.State == control.Stopping
	})
}

// regrouped finds the instances that run tasks of other topics under the numbers of subtopologies here: what one instance takes for
// released would be another's work, and some inputs would be processed twice.
func regrouped(top *topology.Topology, others []control.Status) (problems []error) {
	for _, other := range others {
		for id := range min(len(other.Sources), len(top.Subtopologies)) {
			here, there := top.Subtopologies[id].Topics(), other.Sources[id]
			if slices.Equal(slices.Sorted(slices.Values(here)), slices.Sorted(slices.Values(there))) {
				continue
			}
			problems = append(problems, fmt.Errorf("subtopology %d reads %s here, and %s on instance %s, which is running: this change cannot roll through a live group: "+
				"stop all instances, then start them with the new file (one that was killed counts as running for %s)",
				id, strings.Join(here, ", "), strings.Join(there, ", "), other.Instance, control.StaleAfter))
			break
		}
	}
	return problems
}

// tellLeft warns of changelogs of stores that the topology does not have any more.
func (e *evolution) tellLeft(ctx context.Context, cl *kgo.Client, stores, recorded []control.Store) {
	var gone []topics.Spec
	for _, r := range recorded {
		if find(stores, r.Name) == nil {
			gone = append(gone, topics.Spec{Name: r.Changelog, Purpose: r.Name})
		}
	}
	found, _, _ := topics.Inspect(ctx, cl, gone, false) // as it tells of a topic that is not there, or of one that may not be seen
	for _, s := range gone {
		if _, there := found[s.Name]; there {
			e.log.Warn("the topology has no such store any more; its changelog is left as it is: delete the topic when no instance and no rollback needs it",
				"store", s.Purpose, "changelog", s.Name)
		}
	}
}

// record writes the definitions that are not recorded, and those whose record is old.
func (e *evolution) record(ctx context.Context, stores, recorded []control.Store) error {
	for _, s := range stores {
		if r := find(recorded, s.Name); r != nil && r.TopicID == s.TopicID && e.now().Sub(time.UnixMilli(r.AtMs)) < repeatAfter {
			continue
		}
		if err := e.bus.PutStore(ctx, s); err != nil {
			return fmt.Errorf("recording the definition of store %s: %w", s.Name, err)
		}
	}
	return nil
}

// repeat keeps the records from being forgotten, until ctx ends.
func (e *evolution) repeat(ctx context.Context) {
	tick := time.NewTicker(repeatAfter)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := e.record(ctx, e.stores(), nil); err != nil && ctx.Err() == nil {
			e.log.Warn("the definitions of stores could not be repeated; it is tried again in a day", "error", err)
		}
	}
}
