#!/usr/bin/env bash
# A real Apache Kafka for tests: KRaft nodes, broker and controller in one process, from Maven artifacts.
#
#   kafka.sh libs                    fetch the broker's jars into the cache (done by the others when needed)
#   kafka.sh up DIR [PORT]           start it on DIR (data, configuration, log, pid) and print its address;
#                                    without PORT a free one is chosen; on a used DIR: again, same data and port
#   kafka.sh down DIR                stop it (SIGTERM, after 30 s SIGKILL); data stays
#   kafka.sh kill DIR                stop it by SIGKILL
#   kafka.sh cluster DIR N           start N nodes that replicate, on DIR/1 to DIR/N, and print their addresses with
#                                    commas between; up, down and kill DIR/1 then start and stop one of them
#   kafka.sh run COMMAND...          start one in a temporary directory, run COMMAND with
#                                    STREAMWORKER_TEST_BROKERS set, stop it, remove the directory
#   kafka.sh topics ARGS...          Kafka's own kafka-topics
#   kafka.sh console-producer ARGS...  and console-consumer ARGS...: Kafka's own, to write and read records
#   kafka.sh consumer-groups ARGS... Kafka's own kafka-consumer-groups
#   kafka.sh acls ARGS...            Kafka's own kafka-acls
#   kafka.sh java FILE ARGS...       a program in one Java source file, with Kafka's jars
#
# Needs a JDK 17 or newer, and Maven for the first start.
# Settings: KAFKA_VERSION, KAFKA_HEAP (JVM options), KAFKA_CACHE (the jars), KAFKA_EXTRA_CONFIG (lines for
# server.properties), KAFKA_LISTENERS (more listeners for up, as NAME:PROTOCOL, e.g. "TLS:SSL OTHER:SASL_SSL"; their
# addresses are in DIR/listeners, one "NAME ADDRESS" a line), KAFKA_FORMAT_ARGS (for the storage format, e.g. --feature transaction.version=1).
set -euo pipefail

KAFKA_VERSION=${KAFKA_VERSION:-4.4.0}
KAFKA_HEAP=${KAFKA_HEAP:--Xms256m -Xmx1g}
KAFKA_CACHE=${KAFKA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/streamworker/kafka-$KAFKA_VERSION}
LOG4J_VERSION=2.25.5
SCALA_VERSION=2.13
java=${JAVA_HOME:+$JAVA_HOME/bin/}java

die() { echo "kafka.sh: $*" >&2; exit 1; }
# A process that nobody has waited for is a zombie: it runs no more.
alive() { [ -r "/proc/$1/stat" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$1/status"; }

need_java() {
  local version
  version=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p') ||
    die "no java found: install a JDK 17 or newer (e.g. apt-get install openjdk-17-jdk-headless) or set JAVA_HOME"
  [ "${version:-0}" -ge 17 ] || die "java is version ${version:-unknown}: Kafka needs 17 or newer, set JAVA_HOME"
}

libs() {
  [ -e "$KAFKA_CACHE/complete" ] && return
  command -v mvn >/dev/null || die "no mvn found: install Maven (e.g. apt-get install maven) to fetch Kafka $KAFKA_VERSION"
  local work
  mkdir -p "$KAFKA_CACHE"
  work=$(mktemp -d "$KAFKA_CACHE/fetch.XXXXXX")
  dependency() { echo "<dependency><groupId>$1</groupId><artifactId>$2</artifactId><version>$3</version></dependency>"; }
  cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>test</groupId><artifactId>kafka</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    $(dependency org.apache.kafka "kafka_$SCALA_VERSION" "$KAFKA_VERSION")
    $(dependency org.apache.kafka kafka-tools "$KAFKA_VERSION")
    $(dependency org.apache.logging.log4j log4j-slf4j-impl "$LOG4J_VERSION")
    $(dependency org.apache.logging.log4j log4j-core "$LOG4J_VERSION")
  </dependencies>
</project>
POM
  echo "kafka.sh: fetching Kafka $KAFKA_VERSION by mvn" >&2
  if ! (cd "$work" && mvn -B -q -Dstyle.color=never dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=lib) >&2; then
    rm -rf "$work"
    die "mvn could not fetch Kafka $KAFKA_VERSION: see its message above"
  fi
  rm -rf "$KAFKA_CACHE/lib"
  mv "$work/lib" "$KAFKA_CACHE/lib"
  rm -rf "$work"
  touch "$KAFKA_CACHE/complete"
}

# free_port: one of 20000 to 31999 (below the range for outgoing connections) on which nobody listens.
free_port() {
  local port
  for _ in $(seq 200); do
    port=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then echo "$port"; return; fi
  done
  die "no free port found"
}

# more_listeners DIR PORT...: chooses the ports of KAFKA_LISTENERS, other than the given ones, and writes DIR/listeners.
more_listeners() {
  local dir=$1 listener port used
  shift
  used=" $* "
  : >"$dir/listeners"
  for listener in ${KAFKA_LISTENERS:-}; do
    port=$(free_port)
    while [[ $used == *" $port "* ]]; do port=$(free_port); done
    used+="$port "
    echo "${listener%%:*} 127.0.0.1:$port" >>"$dir/listeners"
  done
}

# nodes DIR: the number of nodes in the cluster that the node on DIR belongs to.
nodes() { if [ -f "$1/voters" ]; then tr ',' '\n' <"$1/voters" | wc -l; else echo 1; fi; }

configure() { # DIR PORT CONTROLLER_PORT
  local id=1 voters=1@127.0.0.1:$3 copies insync
  if [ -f "$1/voters" ]; then
    id=$(cat "$1/id")
    voters=$(cat "$1/voters")
  fi
  local name address more="" protocols=""
  if [ -f "$1/listeners" ]; then
    while read -r name address; do more+=",$name://$address"; done <"$1/listeners"
  fi
  for name in ${KAFKA_LISTENERS:-}; do protocols+=",$name"; done
  copies=$(nodes "$1")
  if [ "$copies" -gt 3 ]; then copies=3; fi
  insync=$(((copies + 1) / 2))
  cat >"$1/log4j2.properties" <<'LOG'
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
# says when the node serves
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = INFO
LOG
  # Short broker sessions let a killed node register again at once; few partitions of the internal topics start fast.
  cat >"$1/server.properties" <<CONFIG
process.roles=broker,controller
node.id=$id
controller.quorum.voters=$voters
listeners=PLAINTEXT://127.0.0.1:$2,CONTROLLER://127.0.0.1:$3$more
advertised.listeners=PLAINTEXT://127.0.0.1:$2$more
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT$protocols
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs=$1/data
auto.create.topics.enable=false
default.replication.factor=$copies
min.insync.replicas=$insync
offsets.topic.replication.factor=$copies
offsets.topic.num.partitions=8
transaction.state.log.replication.factor=$copies
transaction.state.log.min.isr=$insync
transaction.state.log.num.partitions=8
share.coordinator.state.topic.replication.factor=$copies
share.coordinator.state.topic.min.isr=$insync
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
${KAFKA_EXTRA_CONFIG:-}
CONFIG
}

up() { # DIR [PORT]
  local dir port cport pid
  need_java
  libs
  mkdir -p "$1"
  dir=$(cd "$1" && pwd)
  if [ -f "$dir/pid" ] && alive "$(cat "$dir/pid")"; then die "already running on $dir as process $(cat "$dir/pid")"; fi
  if [ -f "$dir/address" ]; then
    port=$(sed 's/.*://' "$dir/address")
    cport=$(cat "$dir/controller-port")
  else
    port=${2:-$(free_port)}
    cport=$(free_port)
    while [ "$cport" = "$port" ]; do cport=$(free_port); done
    echo "$cport" >"$dir/controller-port"
    more_listeners "$dir" "$port" "$cport"
    echo "127.0.0.1:$port" >"$dir/address"
  fi
  configure "$dir" "$port" "$cport"
  if [ ! -f "$dir/data/meta.properties" ]; then
    # shellcheck disable=SC2086 # options are words
    "$java" -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$KAFKA_CACHE/lib/*" -Dlog4j2.configurationFile="$dir/log4j2.properties" \
      kafka.tools.StorageTool format -t c3RyZWFtd29ya2VyLXQwMQ -c "$dir/server.properties" ${KAFKA_FORMAT_ARGS:-} >"$dir/format.log" 2>&1 ||
      { cat "$dir/format.log" >&2; die "formatting $dir/data failed"; }
  fi
  : >"$dir/log"
  # In a session of its own: it outlives the shell that started it and gets none of its terminal's signals.
  # shellcheck disable=SC2086
  setsid "$java" $KAFKA_HEAP -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -Djava.awt.headless=true \
    -Dlog4j2.configurationFile="$dir/log4j2.properties" -cp "$KAFKA_CACHE/lib/*" \
    kafka.Kafka "$dir/server.properties" </dev/null >>"$dir/log" 2>&1 &
  pid=$!
  echo "$pid" >"$dir/pid"
  for _ in $(seq 900); do
    if grep -q 'Kafka Server started' "$dir/log"; then cat "$dir/address"; return; fi
    alive "$pid" || { tail -20 "$dir/log" >&2; die "the broker exited: its log is $dir/log"; }
    sleep 0.1
  done
  tail -20 "$dir/log" >&2
  kill -9 "$pid"
  die "the broker does not serve after 90 s: its log is $dir/log"
}

cluster() { # DIR N
  local dir i port cport used=" " voters="" started=()
  need_java
  libs
  mkdir -p "$1"
  dir=$(cd "$1" && pwd)
  for i in $(seq "$2"); do
    mkdir -p "$dir/$i"
    [ ! -f "$dir/$i/address" ] || die "there is a cluster on $dir already: start its nodes by up $dir/1 and so on"
    port=$(free_port)
    while [[ $used == *" $port "* ]]; do port=$(free_port); done
    used+="$port "
    cport=$(free_port)
    while [[ $used == *" $cport "* ]]; do cport=$(free_port); done
    used+="$cport "
    echo "$i" >"$dir/$i/id"
    echo "127.0.0.1:$port" >"$dir/$i/address"
    echo "$cport" >"$dir/$i/controller-port"
    voters+="${voters:+,}$i@127.0.0.1:$cport"
  done
  for i in $(seq "$2"); do
    echo "$voters" >"$dir/$i/voters"
    up "$dir/$i" >/dev/null & # a node serves once most of them run
    started+=("$!")
  done
  for i in "${started[@]}"; do
    if ! wait "$i"; then
      for i in $(seq "$2"); do kill_hard "$dir/$i"; done
      die "not all nodes of the cluster on $dir could be started"
    fi
  done
  cat "$dir"/*/address | paste -sd,
}

down() { # DIR
  local pid
  [ -f "$1/pid" ] || return 0
  pid=$(cat "$1/pid")
  kill "$pid" 2>/dev/null || true
  for _ in $(seq 300); do alive "$pid" || break; sleep 0.1; done
  kill -9 "$pid" 2>/dev/null || true
  rm -f "$1/pid"
}

kill_hard() { # DIR
  local pid
  [ -f "$1/pid" ] || return 0
  pid=$(cat "$1/pid")
  kill -9 "$pid" 2>/dev/null || true
  while alive "$pid"; do sleep 0.1; done
  rm -f "$1/pid"
}

run() { # COMMAND...
  local dir
  dir=$(mktemp -d "${TMPDIR:-/tmp}/streamworker-kafka.XXXXXX")
  # shellcheck disable=SC2064 # now, not then: dir is local
  trap "down '$dir'; rm -rf '$dir'" EXIT
  STREAMWORKER_TEST_BROKERS=$(up "$dir")
  export STREAMWORKER_TEST_BROKERS
  "$@"
}

[ $# -gt 0 ] || die "usage: $0 libs | up DIR [PORT] | down DIR | kill DIR | cluster DIR N | run COMMAND... | java FILE ARGS... | TOOL ARGS..., where TOOL is topics, console-producer, console-consumer, consumer-groups or acls"
command=$1
shift
tool() { # CLASS ARGS...
  need_java
  libs
  exec "$java" -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$KAFKA_CACHE/lib/*" "$@"
}

case $command in
libs) libs ;;
up) up "$@" ;;
down) down "$@" ;;
kill) kill_hard "$@" ;;
cluster) cluster "$@" ;;
run) run "$@" ;;
topics) tool org.apache.kafka.tools.TopicCommand "$@" ;;
console-producer) tool org.apache.kafka.tools.ConsoleProducer "$@" ;;
console-consumer) tool org.apache.kafka.tools.consumer.ConsoleConsumer "$@" ;;
consumer-groups) tool org.apache.kafka.tools.consumer.group.ConsumerGroupCommand "$@" ;;
acls) tool org.apache.kafka.tools.AclCommand "$@" ;;
java) tool "$@" ;;
*) die "unknown command $command" ;;
esac
