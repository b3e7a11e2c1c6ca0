package streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/** The jobs, each the twin of one of streamworker's. */
final class Jobs {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Jobs() {}

    static Topology of(String name, String input, String output) {
        return switch (name) {
            case "count" -> count(input, output);
            case "windowed" -> windowed(input, output);
            case "filter" -> filter(input, output);
            default -> throw new IllegalArgumentException("no job is called " + name);
        };
    }

    /** Counts records by key, in a store named counts. */
    private static Topology count(String input, String output) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(input, Consumed.with(Serdes.String(), Serdes.ByteArray()))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.ByteArray()))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts")
                .withKeySerde(Serdes.String())
                .withValueSerde(Serdes.Long()))
            .toStream()
            .to(output, Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build();
    }

    /** Counts records by key and minute. Late ones are taken for another minute. */
    private static Topology windowed(String input, String output) {
        Duration minute = Duration.ofMinutes(1);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(input, Consumed.with(Serdes.String(), Serdes.ByteArray()))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.ByteArray()))
            .windowedBy(TimeWindows.ofSizeAndGrace(minute, minute))
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("counts")
                .withKeySerde(Serdes.String())
                .withValueSerde(Serdes.Long()))
            .toStream()
            .to(output, Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, minute.toMillis()), Serdes.Long()));
        return builder.build();
    }

    /** Keeps orders above an amount and makes them smaller; no state. */
    private static Topology filter(String input, String output) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(input, Consumed.with(Serdes.String(), json()))
            .filter((key, order) -> order.get("amount").asDouble() > 50)
            .mapValues(order -> (JsonNode) MAPPER.createObjectNode()
                .put("user", order.get("user").asText())
                .put("cents", (long) (order.get("amount").asDouble() * 100)))
            .to(output, Produced.with(Serdes.String(), json()));
        return builder.build();
    }

    private static Serde<JsonNode> json() {
        return Serdes.serdeFrom(
            (topic, value) -> {
                try {
                    return MAPPER.writeValueAsBytes(value);
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            },
            (topic, bytes) -> {
                try {
                    return MAPPER.readTree(bytes);
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
    }
}
