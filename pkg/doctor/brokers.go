package doctor

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamworker/streamworker/pkg/config"
	"github.com/streamworker/streamworker/pkg/kafka"
)

const (
	checkConnection = "connection"
	checkBrokers    = "brokers"
	checkFeatures   = "transactions"
)

// addresses tries each configured address for itself and tells whether one serves, which is not known after the end of ctx.
func (d *Doctor) addresses(ctx context.Context) bool {
	k := d.cfg.Kafka
	errs := make([]error, len(k.Brokers))
	var wait sync.WaitGroup
	for i, address := range k.Brokers {
		wait.Go(func() { errs[i] = d.address(ctx, address) })
	}
	wait.Wait()
	if ctx.Err() != nil {
		return false // nothing was found out
	}
	serving := slices.Contains(errs, nil)
	for i, address := range k.Brokers {
		switch {
		case errs[i] == nil:
			d.tell(checkConnection, OK, "%s answers, %s", address, how(k.Connection))
		case serving:
			d.tell(checkConnection, Warning, "%v; another address of kafka.brokers serves", errs[i])
		default:
			d.tell(checkConnection, Failed, "%v", errs[i])
		}
	}
	if serving && k.SecretInClear() {
		d.tell(checkConnection, Warning, "the password or token crosses the network in clear: set kafka.tls, or use SCRAM")
	}
	return serving
}

func (d *Doctor) address(ctx context.Context, address string) error {
	cl, err := d.client([]string{address})
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	defer cl.Close()
	return kafka.Reach(ctx, cl, d.patience)
}

// how describes a connection.
func how(c kafka.Connection) string {
	text := "in plain text"
	if c.TLS.Enabled {
		text = "by TLS"
		if c.TLS.Cert != "" {
			text += " with a client certificate"
		}
	}
	if c.SASL.Mechanism == "" {
		return text + ", without SASL"
	}
	text += ", SASL " + string(c.SASL.Mechanism)
	if c.SASL.Username != "" {
		text += " as " + c.SASL.Username
	}
	return text
}

// members asks each broker of the cluster, at the address that it advertises.
func (d *Doctor) members(ctx context.Context) {
	meta, err := d.adm.BrokerMetadata(ctx)
	if err != nil {
		d.fail(checkBrokers, fmt.Errorf("asking for the cluster's brokers: %w", err))
		return
	}
	answers, err := d.adm.ApiVersions(ctx)
	if err != nil {
		d.fail(checkBrokers, fmt.Errorf("asking for the brokers' versions: %w", err))
		return
	}
	var versions []string
	d.transactionLevel = -1
	for _, b := range meta.Brokers {
		address := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
		a := answers[b.NodeID]
		if a.Err != nil {
			d.tell(checkBrokers, Failed, "broker %d cannot be reached at %s, the address that it advertises: %v: correct its advertised.listeners, or the way there", b.NodeID, address, kafka.Explain(a.Err))
			continue
		}
		versions = append(versions, a.VersionGuess())
		d.tell(checkBrokers, OK, "broker %d answers at %s, Kafka %s", b.NodeID, address, a.VersionGuess())
		if level := feature(a.Raw(), "transaction.version"); d.transactionLevel < 0 || level < d.transactionLevel {
			d.transactionLevel = level
		}
	}
	slices.Sort(versions)
	if versions = slices.Compact(versions); len(versions) > 1 {
		d.tell(checkBrokers, Warning, "they run different versions (%s): end the upgrade", strings.Join(versions, "; "))
	}
}

func feature(a *kmsg.ApiVersionsResponse, name string) int16 {
	for _, f := range a.FinalizedFeatures {
		if f.Name == name {
			return f.MaxVersionLevel
		}
	}
	return 0
}

// transactions looks at what exactly once needs.
func (d *Doctor) transactions(ctx context.Context) {
	if d.cfg.Guarantee != config.ExactlyOnce {
		return
	}
	switch level := d.transactionLevel; {
	case level < 0: // no broker said
	case level < 2:
		d.tell(checkFeatures, Warning, "the brokers have transaction version %d: it works, with one more request for each commit and without the brokers' protection against late "+
			"requests of a dead instance: kafka-features upgrade --feature transaction.version=2, from Kafka 4.0 on", level)
	default:
		d.tell(checkFeatures, OK, "the brokers have transaction version %d", level)
	}
	if d.cfg.InstanceID == "" {
		d.tell(checkFeatures, Warning, "instance_id is not set: a restart has another transactional id and cannot end what its former self has left open")
	}
	id := d.cfg.App + "-" + d.cfg.InstanceID
	d.transactionalID(id, kafka.Settled(ctx, func() error {
		described, err := d.adm.DescribeTransactions(ctx, id)
		if err != nil {
			return err
		}
		return described[id].Err
	}))
}
