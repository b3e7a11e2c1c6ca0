package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/control"
	"github.com/streamworker/streamworker/pkg/instance"
	"github.com/streamworker/streamworker/pkg/kafka"
	"github.com/streamworker/streamworker/pkg/topics"
)

const (
	checkTopics = "topics"
	checkRights = "rights"
)

// topics checks what is read and written, and the internal topics.
func (d *Doctor) topics(ctx context.Context) {
	top := d.cfg.Topology
	known, err := topics.Describe(ctx, d.cl, append(top.Inputs(), top.Outputs()...))
	if err != nil {
		d.fail(checkTopics, err)
		d.skip("without the topics above", "internal topics")
		return
	}
	inputs := make(map[string]int32)
	for _, name := range top.Inputs() {
		inputs[name] = known[name].Partitions
	}
	if d.needs, err = instance.NeedsOf(d.cfg, inputs); err != nil {
		d.fail(checkTopics, err)
		return
	}
	tasks := int32(0)
	for _, n := range d.needs.Tasks {
		tasks += n
	}
	d.tell(checkTopics, OK, "%s are there, for %d tasks", strings.Join(slices.Sorted(maps.Keys(known)), ", "), tasks)
	d.internal(ctx)
	d.replicas(ctx, slices.Collect(maps.Keys(known)))
}

func (d *Doctor) internal(ctx context.Context) {
	const check = "internal topics"
	found, missing, err := topics.Inspect(ctx, d.cl, d.needs.Internal, d.cfg.InternalTopics.Create)
	d.found = found
	if err != nil {
		d.fail(check, err)
		return
	}
	if len(missing) > 0 {
		d.tell(check, OK, "%d are there, %d are missing and can be made by the next start", len(found), len(missing))
	} else {
		d.tell(check, OK, "%d are there and fit", len(found))
	}
}

// replicas checks that each partition has a leader and enough copies, now and if a broker fails.
func (d *Doctor) replicas(ctx context.Context, names []string) {
	const check = "replicas"
	names = append(append(names, control.TopicName(d.cfg.App)), slices.Collect(maps.Keys(d.found))...)
	slices.Sort(names)
	listed, err := d.adm.ListTopics(ctx, names...)
	if err != nil {
		d.fail(check, fmt.Errorf("asking for replicas: %w", err))
		return
	}
	bad := false
	worse := func(r Result, format string, args ...any) {
		bad = true
		d.tell(check, r, format, args...)
	}
	var single []string // topics of one copy
	for _, name := range names {
		t := listed[name]
		if t.Err != nil || len(t.Partitions) == 0 {
			if !errors.Is(t.Err, kerr.UnknownTopicOrPartition) { // else it is the control topic, or was told of before
				worse(Failed, "topic %s cannot be looked at: %v", name, t.Err)
			}
			continue
		}
		need := d.found[name].MinInsync // 0: not known, as of topics of the user
		copies := len(t.Partitions[0].Replicas)
		switch {
		case need > copies:
			worse(Failed, "topic %s has %d copies and min.insync.replicas=%d: nothing can be written to it: lower min.insync.replicas", name, copies, need)
		case copies == 1:
			single = append(single, name)
		case need == copies:
			worse(Warning, "topic %s has %d copies and min.insync.replicas=%d: nothing can be written to it while one broker is down: lower min.insync.replicas to %d, or add a copy",
				name, copies, need, need-1)
		case copies > 2 && need == 1:
			worse(Warning, "topic %s has min.insync.replicas=1: a record that was acknowledged may be lost with one broker: set it to 2", name)
		}
		for _, p := range t.Partitions.Sorted() {
			switch {
			case p.Leader < 0:
				worse(Failed, "partition %d of topic %s has no leader: start the brokers that have its copies (%v)", p.Partition, name, p.Replicas)
			case len(p.ISR) < need:
				worse(Failed, "partition %d of topic %s has %d copies in sync, min.insync.replicas is %d: nothing can be written to it: look at the brokers %v", p.Partition, name, len(p.ISR), need, missingFrom(p))
			case len(p.ISR) < len(p.Replicas):
				worse(Warning, "partition %d of topic %s has %d of %d copies in sync: look at the brokers %v", p.Partition, name, len(p.ISR), len(p.Replicas), missingFrom(p))
			}
		}
	}
	if len(single) > 0 {
		worse(Warning, "of these topics there is one copy, which is lost with its broker: %s: give them three (kafka-reassign-partitions; of topics made here, internal_topics.replication)",
			strings.Join(single, ", "))
	}
	if !bad {
		d.tell(check, OK, "every partition has a leader and its copies in sync")
	}
}

func missingFrom(p kadm.PartitionDetail) []int32 {
	return slices.DeleteFunc(slices.Clone(p.Replicas), func(b int32) bool { return slices.Contains(p.ISR, b) })
}

// rights checks what this client may do with the topics that are there.
func (d *Doctor) rights(ctx context.Context) {
	if d.needs == nil {
		d.skip("without the topics", checkRights)
		return
	}
	if err := topics.CheckRights(ctx, d.cl, d.needs.Rights); err != nil {
		d.fail(checkRights, err)
		return
	}
	d.tell(checkRights, OK, "all that are needed on the topics that are there")
}

// transactionalID reports what the answer to a question for the instance's transactional id says. Write cannot be checked without taking the id over.
func (d *Doctor) transactionalID(id string, err error) {
	switch {
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		d.tell(checkRights, Failed, "not authorized to DESCRIBE transactional id %s: grant this client's principal the ACL operations DESCRIBE and WRITE on transactional ids with prefix %s-, e.g. with kafka-acls",
			id, d.cfg.App)
	case err == nil, errors.Is(err, kerr.TransactionalIDNotFound):
		d.tell(checkRights, OK, "DESCRIBE on transactional id %s; whether WRITE is granted shows only at the start", id)
	default:
		d.tell(checkRights, Skipped, "on transactional id %s: %v", id, err)
	}
}

// groupRights asks as nobody that is a member would: a heartbeat needs the right to be one, and changes nothing.
func (d *Doctor) groupRights(ctx context.Context) {
	name := d.cfg.Kafka.Group
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.Generation, req.MemberID = name, -1, "streamworker-doctor"
	err := kafka.Settled(ctx, func() error {
		resp, err := req.RequestWith(ctx, d.cl)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		d.tell(checkRights, Failed, "not authorized to READ group %s: grant this client's principal the ACL operations READ and DESCRIBE on it, e.g. with kafka-acls", name)
	case err == nil, errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.GroupIDNotFound), errors.Is(err, kerr.IllegalGeneration), errors.Is(err, kerr.RebalanceInProgress):
		d.tell(checkRights, OK, "READ and DESCRIBE on group %s", name)
	default:
		d.tell(checkRights, Skipped, "on group %s: %v", name, err)
	}
}
