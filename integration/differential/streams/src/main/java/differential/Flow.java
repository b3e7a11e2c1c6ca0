package differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/** A stream, a table or a global table, with the formats of its keys and values. */
record Flow(Object of, String key, String value, Windows windows) {
    /** How keys are cut into windows. */
    record Windows(JsonNode description) {
        boolean session() {
            return description.has("session");
        }

        long size() {
            return description.path("size").asLong();
        }

        Duration duration(String name) {
            return Duration.ofMillis(description.path(name).asLong());
        }
    }

    @SuppressWarnings("unchecked")
    KStream<Object, Object> stream() {
        return (KStream<Object, Object>) of;
    }

    @SuppressWarnings("unchecked")
    KTable<Object, Object> table() {
        return (KTable<Object, Object>) of;
    }

    @SuppressWarnings("unchecked")
    GlobalKTable<Object, Object> global() {
        return (GlobalKTable<Object, Object>) of;
    }

    Flow of(Object other) {
        return new Flow(other, key, value, windows);
    }

    Flow value(Object other, String format) {
        return new Flow(other, key, format, windows);
    }

    Serde<Object> keySerde() {
        if (windows == null) {
            return Formats.serde(key);
        }
        return cast(windows.session()
            ? new WindowedSerdes.SessionWindowedSerde<>(Formats.serde(key))
            : new WindowedSerdes.TimeWindowedSerde<>(Formats.serde(key), windows.size()));
    }

    @SuppressWarnings("unchecked")
    private static Serde<Object> cast(Serde<? extends Windowed<Object>> serde) {
        return (Serde<Object>) (Serde<?>) serde;
    }

    Serde<Object> valueSerde() {
        return Formats.serde(value);
    }
}
