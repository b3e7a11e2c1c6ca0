package differential;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Runs topologies through TopologyTestDriver. Each line of standard input is a run: {"topology":[STATEMENT...],"inputs":[{"topic","key",
 * "value","ts"}...],"advance_wall_clock_ms":0}; each line of standard output is what it gives: {"outputs":{TOPIC:[{"i","key","value","ts",
 * "window_start","window_end"}...]},"tables":{TOPIC:{KEY:VALUE}}}, or {"error"}. The argument is a directory for state.
 */
public final class Main {
    private final TopologyTestDriver driver;
    private final Description description;
    private final ObjectNode outputs = Formats.MAPPER.createObjectNode();
    private final ObjectNode tables = Formats.MAPPER.createObjectNode();

    private Main(JsonNode run, Path state) {
        description = new Description(run.get("topology"));
        Properties p = new Properties();
        p.put(StreamsConfig.APPLICATION_ID_CONFIG, "differential");
        p.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        p.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        p.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        p.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        p.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        // Results are written when they are due, not once a second.
        p.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0);
        p.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0);
        driver = new TopologyTestDriver(description.builder.build(), p, Instant.EPOCH);
        for (String topic : description.outputs.keySet()) {
            outputs.putArray(topic);
            tables.putObject(topic);
        }
    }

    private ObjectNode run(JsonNode run) {
        Map<String, TestInputTopic<Object, Object>> inputs = new HashMap<>();
        description.inputs.forEach((topic, flow) ->
            inputs.put(topic, driver.createInputTopic(topic, flow.keySerde().serializer(), flow.valueSerde().serializer())));
        int i = 0;
        for (JsonNode in : run.get("inputs")) {
            String topic = in.get("topic").asText();
            Flow flow = description.inputs.get(topic);
            inputs.get(topic).pipeInput(new TestRecord<>(Formats.fromJson(flow.key(), in.get("key")), Formats.fromJson(flow.value(), in.get("value")),
                new RecordHeaders(), in.get("ts").asLong()));
            collect(i++);
        }
        long advance = run.path("advance_wall_clock_ms").asLong();
        if (advance > 0) {
            driver.advanceWallClockTime(Duration.ofMillis(advance));
            collect(i);
        }
        ObjectNode result = Formats.MAPPER.createObjectNode();
        result.set("outputs", outputs);
        result.set("tables", tables);
        return result;
    }

    /** Takes what was written since the last time, which the input with this index caused. */
    private void collect(int input) {
        description.outputs.forEach((topic, flow) -> {
            var output = driver.createOutputTopic(topic, flow.keySerde().deserializer(), flow.valueSerde().deserializer());
            output.readRecordsToList().forEach(r -> add(topic, input, r));
        });
    }

    private void add(String topic, int input, TestRecord<Object, Object> r) {
        ObjectNode out = ((ArrayNode) outputs.get(topic)).addObject();
        Windowed<?> window = r.key() instanceof Windowed<?> w ? w : null;
        JsonNode key = Formats.toJson(window == null ? r.key() : window.key());
        JsonNode value = Formats.toJson(r.value());
        out.put("i", input);
        out.set("key", key);
        out.set("value", value);
        out.put("ts", r.timestamp());
        String row = key.isTextual() ? key.asText() : key.toString();
        if (window == null) {
            out.putNull("window_start").putNull("window_end");
        } else {
            out.put("window_start", window.window().start()).put("window_end", window.window().end());
            row += "@" + window.window().start() + "/" + window.window().end();
        }
        ObjectNode table = (ObjectNode) tables.get(topic);
        if (key.isNull()) {
            return;
        }
        if (value.isNull()) {
            table.remove(row);
        } else {
            table.set(row, value);
        }
    }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        int n = 0;
        for (String line; (line = in.readLine()) != null; n++) {
            JsonNode run = Formats.MAPPER.readTree(line);
            ObjectNode result;
            Main m = null;
            try {
                m = new Main(run, Path.of(args[0], Integer.toString(n)));
                result = m.run(run);
            } catch (RuntimeException e) {
                e.printStackTrace();
                result = Formats.MAPPER.createObjectNode().put("error", e.toString());
            } finally {
                if (m != null) {
                    m.driver.close();
                }
            }
            out.println(Formats.MAPPER.writeValueAsString(result));
            out.flush();
        }
    }
}
