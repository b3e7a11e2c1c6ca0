package config

// description is what the reference says of a key beside what the code that reads it does.
type description struct {
	Kind    string // instead of that by which it is read
	Default string // where it is not a constant
	Meaning string
}

const (
	none    = "none"
	asApp   = "`app`"
	noBound = "no bound"
	file    = "file"
)

// descriptions of all keys outside of streams. Meanings are Markdown.
var descriptions = map[string]description{
	"app":         {Kind: "name", Default: "required", Meaning: "names the application: group id, prefix of its topics, default of the state directory. At most 200 letters, digits, `.`, `_`, `-`"},
	"instance_id": {Kind: "name", Default: "host name and 8 random hex digits, new at each start", Meaning: "the instance's own id, unique in the application. Not Kafka's `group.instance.id`: membership is dynamic"},
	"labels":      {Default: none, Meaning: "`name: value`, for `leave --selector`. No `=`, `,` or white space"},
	"capacity":    {Meaning: "share of the tasks relative to other instances"},
	"rack":        {Default: none, Meaning: "where the instance is: a zone, a room, a host of virtual machines. Give it to all instances or to none; see [operations.md](operations.md#racks)"},
	"guarantee": {Meaning: "see [semantics.md](semantics.md). Under `exactly_once` give each instance a fixed `instance_id`: it names the transactional producer, " +
		"and a restart ends at once what its former self has left open"},
	"threads": {Default: "GOMAXPROCS (the cores)", Meaning: "tasks that compute at one time; learners and standbys share half as many, at least one"},
	"commit_interval": {Meaning: "time between commits of a running task: what a crash repeats, and how late a changelog is. " +
		"Under `exactly_once` also how late results become visible, and at most half of `kafka.transaction_timeout`"},
	"standbys":           {Meaning: "copies per stateful task kept for failover; bounded by the number of other instances"},
	"balancing_factor":   {Meaning: "tasks move when the most loaded instance has at least this many more than the least loaded, per capacity"},
	"scale_down_timeout": {Default: none, Meaning: "time after which a leaving instance leaves with what is left. Without it a drain takes as long as it needs"},
	"on_terminate": {Default: "`keep` with an `instance_id`, else `release`", Meaning: "what SIGTERM and the first Ctrl-C do, see [operations.md](operations.md#stopping-and-restarting). " +
		"`keep` needs an `instance_id`"},
	"rebalance_mode": {Meaning: "`upgrading`: the group has plain consumers beside the instances, or is to get them, see [operations.md](operations.md#from-plain-consumers)"},
	"upgrade_from": {Kind: "list, or one text with commas: `range`, `roundrobin`, `sticky`, `cooperative-sticky`", Default: none, Meaning: "the protocols of these consumers, their assignment strategies. " +
		"Counts under `upgrading` only"},

	"kafka.brokers":           {Kind: "list, or one text with commas", Default: "required, here or by `--brokers`", Meaning: "`host:port`, or `host` for port 9092"},
	"kafka.group":             {Kind: "name", Default: asApp, Meaning: "consumer group"},
	"kafka.client_id":         {Default: asApp, Meaning: "prefix of the client ids: `<client_id>-<instance id>` and a suffix for the purpose. 200 bytes with the instance id, at most"},
	"kafka.heartbeat":         {Meaning: "also bounds how late a member hears of a round"},
	"kafka.session_timeout":   {Meaning: "after which the group removes a silent member, and a silent group's member stops by itself. At least three heartbeats; the broker bounds it (`group.min.session.timeout.ms`, by default 6 s)"},
	"kafka.rebalance_timeout": {Meaning: "how long a round waits for a member that hangs. Nothing stands still meanwhile"},
	"kafka.max_message_bytes": {Meaning: "the largest batch that is written, before compression: a record that takes more [cannot be processed](semantics.md#records-that-are-too-large). " +
		"A topic's `max.message.bytes` counts where it is less. The default is that of Kafka's producers"},
	"kafka.transaction_timeout": {Meaning: "under `exactly_once`: after which the brokers abort an open transaction. It bounds how long readers of committed data wait where the transaction of a dead instance " +
		"[cannot be ended](semantics.md#exactly-once) by the others; a pause of an instance that is longer than this costs it its uncommitted work. The broker bounds it (`transaction.max.timeout.ms`)"},

	"kafka.tls.enabled":     {Default: "`true` if any of `tls` is given", Meaning: "TLS 1.2 or newer. `tls: {}` is enough where the host trusts the brokers' authority"},
	"kafka.tls.ca":          {Kind: file, Default: "those of the host", Meaning: "PEM certificates of the authorities that vouch for the brokers"},
	"kafka.tls.cert":        {Kind: file, Default: none, Meaning: "PEM certificate of this client, for brokers that demand one (mutual TLS)"},
	"kafka.tls.key":         {Kind: file, Default: none, Meaning: "its PEM key, not encrypted"},
	"kafka.tls.server_name": {Default: "the host that is dialled", Meaning: "name that the brokers' certificates must have"},

	"schema_registry.url":             {Default: none, Meaning: "`http://` or `https://` address of a registry with Confluent's API; several of one registry with commas between. Needed for the formats `avro` and `protobuf`"},
	"schema_registry.username":        {Default: none, Meaning: "for HTTP basic authentication"},
	"schema_registry.password":        {Default: none, Meaning: "with a `username`: this, or"},
	"schema_registry.password_file":   {Kind: file, Default: none, Meaning: "a file that holds it. Read again after a failed request"},
	"schema_registry.tls.enabled":     {Default: "`true` if any of `tls` is given", Meaning: "uses what is below for `https` addresses, which work without it where the host trusts the registry's authority"},
	"schema_registry.tls.ca":          {Kind: file, Default: "those of the host", Meaning: "PEM certificates of the authorities that vouch for the registry"},
	"schema_registry.tls.cert":        {Kind: file, Default: none, Meaning: "PEM certificate of this client, for a registry that demands one"},
	"schema_registry.tls.key":         {Kind: file, Default: none, Meaning: "its PEM key, not encrypted"},
	"schema_registry.tls.server_name": {Default: "the host of the address", Meaning: "name that the registry's certificate must have"},

	"kafka.sasl.mechanism":     {Default: none, Meaning: "how the client proves who it is"},
	"kafka.sasl.username":      {Default: none, Meaning: "for PLAIN and SCRAM"},
	"kafka.sasl.password":      {Default: none, Meaning: "for PLAIN and SCRAM: this, or"},
	"kafka.sasl.password_file": {Kind: file, Default: none, Meaning: "a file that holds it"},
	"kafka.sasl.token_file":    {Kind: file, Default: none, Meaning: "for OAUTHBEARER: a file that holds a token, which something else renews, or"},
	"kafka.sasl.token_endpoint.url": {Default: none, Meaning: "for OAUTHBEARER: asks there for tokens by OAuth 2's client credentials. By `https`; its certificate is checked by the host's authorities " +
		"(`SSL_CERT_FILE` replaces them)"},
	"kafka.sasl.token_endpoint.client_id":          {Default: none, Meaning: "the client as the endpoint knows it"},
	"kafka.sasl.token_endpoint.client_secret":      {Default: none, Meaning: "its secret: this, or"},
	"kafka.sasl.token_endpoint.client_secret_file": {Kind: file, Default: none, Meaning: "a file that holds it"},
	"kafka.sasl.token_endpoint.scope":              {Default: none, Meaning: "names of scopes with spaces between"},
	"kafka.sasl.extensions":                        {Default: none, Meaning: "sent with a token"},

	"internal_topics.create":              {Meaning: "`false`: changelogs and repartition topics must exist; what is missing is an error with the command that creates it"},
	"internal_topics.replication":         {Default: "the broker's", Meaning: "replication factor of topics created here"},
	"internal_topics.min_insync_replicas": {Default: "the broker's", Meaning: "of changelogs and repartition topics created here. At most `replication`"},

	"state.dir":            {Kind: "path", Meaning: "state directory; one process each. The path of `<dir>/admin.sock` may have 100 bytes"},
	"state.row_cache":      {Meaning: "rows in memory in front of the databases, and writes that are not committed yet"},
	"state.block_cache":    {Meaning: "blocks of the databases"},
	"state.memtables":      {Meaning: "committed writes that are not flushed to disk yet"},
	"state.max_open_files": {Meaning: "table files held open"},
	"state.compactions":    {Meaning: "compactions at one time"},

	"learners.mode":           {Meaning: "a learner asks for a round as soon as one task is ready, or once all of the instance's learners are: more and smaller rounds, or fewer and larger ones. Each instance follows its own file"},
	"learners.acceptable_lag": {Meaning: "changelog records behind the end within which a learner is ready. The rest is replayed while the task stands still"},
	"learners.max_learners":   {Default: "0: " + noBound, Meaning: "learners at work per instance; the rest of a leaver's tasks wait their turn"},
	"learners.stuck_after":    {Meaning: "a learner or standby that is behind and has not come on for this long, or has failed ten times in a row, is replaced by another instance's if there is one; `status` says why"},
	"learners.bandwidth": {Default: noBound, Meaning: "share for learners and standbys that are behind. What the stream waits for, a task being taken or restored, is read regardless, " +
		"and so is what is at its changelog's end"},

	"admin.listen": {Kind: "`host:port`, `:port`", Default: "nothing", Meaning: "serves the dashboard, `/metrics`, `/livez` and `/readyz` by HTTP, see [operations.md](operations.md#the-admin-address). " +
		"`:port` listens on 127.0.0.1 only. An address that other hosts reach, such as `0.0.0.0:port`, needs a token or `tls.client_ca`"},
	"admin.advertise": {Kind: "`host:port`, `host`", Default: "the host of `listen`; this host's name if that is every address", Meaning: "where other hosts reach it: commands that read stores ask the instance that has them. " +
		"Without a port: that of `listen`"},
	"admin.token":         {Default: none, Meaning: "clients must present it: `Authorization: Bearer TOKEN`. At least 16 bytes. `/livez` and `/readyz` are open"},
	"admin.token_file":    {Kind: file, Default: none, Meaning: "a file that holds it; read at the start"},
	"admin.allow_actions": {Meaning: "the dashboard may let any instance of the application leave, and take that back"},
	"admin.tls.cert":      {Kind: file, Default: "plain HTTP", Meaning: "PEM certificate of the listener, with its chain. Read again when it changes"},
	"admin.tls.key":       {Kind: file, Default: none, Meaning: "its PEM key, not encrypted"},
	"admin.tls.client_ca": {Kind: file, Default: none, Meaning: "PEM certificates of the authorities of which clients must present a certificate, or the token if there is one"},

	"telemetry.traces.endpoint":     {Default: "nothing", Meaning: "address of a collector that takes OTLP over HTTP, e.g. `http://localhost:4318`"},
	"telemetry.traces.commit_every": {Meaning: "one of so many acknowledged commits is traced; 0: none"},

	"log.level":  {Meaning: "what is logged"},
	"log.format": {Meaning: "to standard error"},
}
