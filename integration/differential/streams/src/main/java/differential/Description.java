package differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.BiFunction;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Predicate;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Windowed;

/**
 * A topology written as a list of statements, each with the name of an operation (op), of the flow that it goes on from (of) and of
 * its result (id). Without of it goes on from the statement before. Functions are those of Functions.
 */
final class Description {
    final StreamsBuilder builder = new StreamsBuilder();
    /** By topic: what is read and written. */
    final Map<String, Flow> inputs = new LinkedHashMap<>();
    final Map<String, Flow> outputs = new LinkedHashMap<>();

    private final Map<String, Flow> flows = new HashMap<>();
    private Flow last;

    Description(JsonNode statements) {
        for (JsonNode s : statements) {
            try {
                last = apply(s);
            } catch (RuntimeException e) {
                throw new IllegalArgumentException("statement " + s + ": " + e.getMessage(), e);
            }
            if (s.has("id")) {
                flows.put(s.get("id").asText(), last);
            }
        }
    }

    private Flow apply(JsonNode s) {
        return switch (s.path("op").asText()) {
            case "stream", "table", "global_table" -> source(s);
            case "filter", "filter_not" -> filter(s);
            case "map_values" -> mapValues(s);
            case "flat_map_values" -> from(s).value(
                from(s).stream().flatMapValues((k, v) -> Functions.list(text(s, "fn")).apply(k, v)), s.path("value").asText(from(s).value()));
            case "select_key" -> selectKey(s);
            case "plain_key" -> new Flow(from(s).stream().selectKey((k, v) -> ((Windowed<?>) k).key()), from(s).key(), from(s).value(), null);
            case "merge" -> from(s).of(from(s).stream().merge(flow(s, "with").stream()));
            case "to_stream" -> from(s).of(from(s).table().toStream());
            case "to_table" -> from(s).of(from(s).stream().toTable(Materialized.with(from(s).keySerde(), from(s).valueSerde())));
            case "repartition" -> from(s).of(from(s).stream().repartition(Repartitioned.with(from(s).keySerde(), from(s).valueSerde())));
            case "count", "reduce", "aggregate" -> Aggregates.of(from(s), s);
            case "aggregate_table" -> Aggregates.ofTable(from(s), s);
            case "suppress" -> suppress(s);
            case "join", "left_join", "outer_join" -> join(s);
            case "to" -> to(s);
            default -> throw new IllegalArgumentException("no operation is called so");
        };
    }

    static String text(JsonNode s, String field) {
        if (!s.hasNonNull(field)) {
            throw new IllegalArgumentException(field + " is missing");
        }
        return s.get(field).asText();
    }

    private Flow flow(JsonNode s, String field) {
        Flow f = flows.get(text(s, field));
        if (f == null) {
            throw new IllegalArgumentException("no flow is called " + text(s, field));
        }
        return f;
    }

    private Flow from(JsonNode s) {
        return s.has("of") ? flow(s, "of") : last;
    }

    private Flow source(JsonNode s) {
        String topic = text(s, "topic");
        Flow f = new Flow(null, s.path("key").asText("string"), s.path("value").asText("string"), null);
        inputs.put(topic, f);
        Consumed<Object, Object> consumed = Consumed.with(f.keySerde(), f.valueSerde());
        return switch (text(s, "op")) {
            case "stream" -> f.of(builder.stream(topic, consumed));
            case "table" -> f.of(builder.table(topic, consumed, Materialized.with(f.keySerde(), f.valueSerde())));
            default -> f.of(builder.globalTable(topic, consumed));
        };
    }

    private Flow filter(JsonNode s) {
        Flow f = from(s);
        Predicate<Object, Object> given = Functions.predicate(text(s, "fn"));
        Predicate<Object, Object> p = text(s, "op").equals("filter") ? given : (k, v) -> !given.test(k, v);
        return f.of(f.of() instanceof KTable ? f.table().filter(p) : f.stream().filter(p));
    }

    private Flow mapValues(JsonNode s) {
        Flow f = from(s);
        var m = Functions.mapper(text(s, "fn"));
        Object result = f.of() instanceof KTable ? f.table().mapValues(m::apply) : f.stream().mapValues(m::apply);
        return f.value(result, s.path("value").asText(f.value()));
    }

    private Flow selectKey(JsonNode s) {
        Flow f = from(s);
        KStream<Object, Object> result = f.stream().selectKey(Functions.mapper(text(s, "fn")));
        return new Flow(result, s.path("key").asText("string"), f.value(), null);
    }

    private Flow suppress(JsonNode s) {
        Flow f = from(s);
        if (s.has("limit")) {
            return f.of(f.table().suppress(Suppressed.untilTimeLimit(Duration.ofMillis(s.get("limit").asLong()), Suppressed.BufferConfig.unbounded())));
        }
        return f.of(untilClose(f.of()));
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Object untilClose(Object table) {
        return ((KTable) table).suppress((Suppressed) Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()));
    }

    private Flow join(JsonNode s) {
        Flow left = from(s);
        Flow right = flow(s, "with");
        String op = text(s, "op");
        var joiner = Functions.joiner(text(s, "fn"));
        String format = s.path("value").asText("string");
        Object result;
        if (right.of() instanceof GlobalKTable<?, ?>) {
            var key = Functions.mapper(text(s, "by"));
            result = op.equals("join") ? left.stream().join(right.global(), key, joiner) : left.stream().leftJoin(right.global(), key, joiner);
        } else if (left.of() instanceof KStream && right.of() instanceof KStream) {
            result = joinStreams(left, right, s);
        } else if (left.of() instanceof KStream) {
            Joined<Object, Object, Object> joined = Joined.with(left.keySerde(), left.valueSerde(), right.valueSerde());
            result = op.equals("join") ? left.stream().join(right.table(), joiner, joined) : left.stream().leftJoin(right.table(), joiner, joined);
        } else {
            result = joinTables(left, right, s, Materialized.with(left.keySerde(), Formats.serde(format)));
        }
        return left.value(result, format);
    }

    private static Object joinStreams(Flow left, Flow right, JsonNode s) {
        JoinWindows windows = JoinWindows
            .ofTimeDifferenceAndGrace(Duration.ZERO, Duration.ofMillis(s.path("grace").asLong()))
            .before(Duration.ofMillis(s.path("before").asLong()))
            .after(Duration.ofMillis(s.path("after").asLong()));
        var joiner = Functions.joiner(text(s, "fn"));
        StreamJoined<Object, Object, Object> joined = StreamJoined.with(left.keySerde(), left.valueSerde(), right.valueSerde());
        return switch (text(s, "op")) {
            case "join" -> left.stream().join(right.stream(), joiner, windows, joined);
            case "left_join" -> left.stream().leftJoin(right.stream(), joiner, windows, joined);
            default -> left.stream().outerJoin(right.stream(), joiner, windows, joined);
        };
    }

    private static Object joinTables(Flow left, Flow right, JsonNode s, Materialized<Object, Object, ?> as) {
        var joiner = Functions.joiner(text(s, "fn"));
        if (s.has("by")) { // a foreign key
            var key = Functions.mapper(text(s, "by"));
            BiFunction<Object, Object, Object> foreign = (k, v) -> key.apply(k, v);
            return text(s, "op").equals("join")
                ? left.table().join(right.table(), foreign, joiner, store(as)) : left.table().leftJoin(right.table(), foreign, joiner, store(as));
        }
        return switch (text(s, "op")) {
            case "join" -> left.table().join(right.table(), joiner, store(as));
            case "left_join" -> left.table().leftJoin(right.table(), joiner, store(as));
            default -> left.table().outerJoin(right.table(), joiner, store(as));
        };
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static <S extends org.apache.kafka.streams.processor.StateStore> Materialized<Object, Object, S> store(Materialized<Object, Object, ?> m) {
        return (Materialized) m;
    }

    private Flow to(JsonNode s) {
        Flow f = from(s);
        String topic = text(s, "topic");
        f.stream().to(topic, Produced.with(f.keySerde(), f.valueSerde()));
        outputs.put(topic, f);
        return f;
    }
}
