package differential;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Reducer;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/** count, reduce and aggregate, over all of a key, or in windows. */
final class Aggregates {
    private Aggregates() {}

    static Flow of(Flow in, JsonNode s) {
        String value = counts(s) ? "int" : in.value();
        KGroupedStream<Object, Object> grouped = in.stream().groupByKey(Grouped.with(in.keySerde(), in.valueSerde()));
        Reducer<Object> reducer = counts(s) ? null : Functions.reducer(Description.text(s, "fn"));
        boolean initial = s.has("initial");
        if (!s.has("windows")) {
            Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> as = Materialized.with(in.keySerde(), Formats.serde(value));
            if (initial) {
                return in.value(grouped.aggregate(() -> Formats.fromJson(value, s.get("initial")), (k, v, a) -> reducer.apply(a, v), as), value);
            }
            return in.value(reducer == null ? counted(grouped.count(longs(as))) : grouped.reduce(reducer, as), value);
        }
        Flow.Windows w = new Flow.Windows(s.get("windows"));
        EmitStrategy emit = s.path("emit").asText("update").equals("close") ? EmitStrategy.onWindowClose() : EmitStrategy.onWindowUpdate();
        if (initial) {
            Materialized<Object, Object, WindowStore<Bytes, byte[]>> as = retained(Materialized.with(in.keySerde(), Formats.serde(value)), w);
            return new Flow(grouped.windowedBy(TimeWindows.ofSizeAndGrace(w.duration("size"), w.duration("grace")))
                .aggregate(() -> Formats.fromJson(value, s.get("initial")), (k, v, a) -> reducer.apply(a, v), as), in.key(), value, w);
        }
        return new Flow(windowed(grouped, w, emit, reducer, in, value), in.key(), value, w);
    }

    private static boolean counts(JsonNode s) {
        return s.get("op").asText().equals("count");
    }

    private static Object windowed(KGroupedStream<Object, Object> grouped, Flow.Windows w, EmitStrategy emit, Reducer<Object> reducer, Flow in, String value) {
        if (w.session()) {
            SessionWindowedKStream<Object, Object> sessions = grouped
                .windowedBy(SessionWindows.ofInactivityGapAndGrace(w.duration("session"), w.duration("grace"))).emitStrategy(emit);
            Materialized<Object, Object, SessionStore<Bytes, byte[]>> as = retained(Materialized.with(in.keySerde(), Formats.serde(value)), w);
            return reducer == null ? counted(sessions.count(longs(as))) : sessions.reduce(reducer, as);
        }
        TimeWindowedKStream<Object, Object> windows;
        if (w.description().path("sliding").asBoolean()) {
            windows = grouped.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(w.duration("size"), w.duration("grace")));
        } else {
            TimeWindows times = TimeWindows.ofSizeAndGrace(w.duration("size"), w.duration("grace"));
            windows = grouped.windowedBy(w.description().has("advance") ? times.advanceBy(w.duration("advance")) : times);
        }
        windows = windows.emitStrategy(emit);
        Materialized<Object, Object, WindowStore<Bytes, byte[]>> as = retained(Materialized.with(in.keySerde(), Formats.serde(value)), w);
        return reducer == null ? counted(windows.count(longs(as))) : windows.reduce(reducer, as);
    }

    /** retention, if given, is longer than Kafka's default, under which windows are lost that are due to be emitted. */
    private static <S extends org.apache.kafka.streams.processor.StateStore> Materialized<Object, Object, S> retained(
        Materialized<Object, Object, S> as, Flow.Windows w) {
        return w.description().has("retention") ? as.withRetention(w.duration("retention")) : as;
    }

    /** A table grouped by another key. */
    static Flow ofTable(Flow in, JsonNode s) {
        var by = Functions.mapper(Description.text(s, "by"));
        String key = s.path("key").asText("string");
        var grouped = in.table().groupBy((k, v) -> KeyValue.pair(by.apply(k, v), v), Grouped.with(Formats.serde(key), in.valueSerde()));
        if (!s.has("add")) {
            Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> as = Materialized.with(Formats.serde(key), Formats.serde("int"));
            return new Flow(counted(grouped.count(longs(as))), key, "int", null);
        }
        Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> as = Materialized.with(Formats.serde(key), in.valueSerde());
        return new Flow(grouped.reduce(Functions.reducer(Description.text(s, "add")), Functions.reducer(Description.text(s, "subtract")), as), key, in.value(), null);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static <S extends org.apache.kafka.streams.processor.StateStore> Materialized<Object, Long, S> longs(Materialized<Object, Object, S> as) {
        return (Materialized) as;
    }

    private static Object counted(KTable<?, ?> table) {
        return table;
    }
}
