package differential;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;

/** How keys and values are written, by the names that streamworker has for it, and what they are in JSON. */
final class Formats {
    static final ObjectMapper MAPPER = new ObjectMapper();
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    private Formats() {}

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Serde<Object> serde(String format) {
        return (Serde<Object>) (Serde) switch (format) {
            case "string" -> Serdes.String();
            case "int" -> Serdes.Long();
            case "float" -> Serdes.Double();
            case "json" -> json();
            default -> throw new IllegalArgumentException("no format is called " + format);
        };
    }

    /** Objects keep the order of their fields in MAPPER's trees; equality does not look at it. */
    private static Serde<JsonNode> json() {
        return Serdes.serdeFrom(
            (topic, value) -> {
                try {
                    return value == null ? null : MAPPER.writeValueAsBytes(value);
                } catch (JsonProcessingException e) {
                    throw new UncheckedIOException(e);
                }
            },
            (topic, bytes) -> {
                try {
                    return bytes == null ? null : MAPPER.readTree(bytes);
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
    }

    static Object fromJson(String format, JsonNode node) {
        if (node == null || node.isNull()) {
            return null;
        }
        return switch (format) {
            case "string" -> node.asText();
            case "int" -> node.asLong();
            case "float" -> node.asDouble();
            default -> node;
        };
    }

    static JsonNode toJson(Object value) {
        if (value == null) {
            return JSON.nullNode();
        }
        if (value instanceof String s) {
            return JSON.textNode(s);
        }
        if (value instanceof Long n) {
            return JSON.numberNode(n);
        }
        if (value instanceof Double d) {
            return JSON.numberNode(d);
        }
        return (JsonNode) value;
    }
}
