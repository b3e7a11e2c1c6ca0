package differential;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.streams.kstream.KeyValueMapper;
import org.apache.kafka.streams.kstream.Predicate;
import org.apache.kafka.streams.kstream.Reducer;
import org.apache.kafka.streams.kstream.ValueJoiner;

/** The functions that topologies name, as NAME or NAME:ARGUMENT. */
final class Functions {
    private Functions() {}

    private static String name(String call) {
        int colon = call.indexOf(':');
        return colon < 0 ? call : call.substring(0, colon);
    }

    private static String argument(String call) {
        return call.substring(call.indexOf(':') + 1);
    }

    static Predicate<Object, Object> predicate(String call) {
        String arg = argument(call);
        return switch (name(call)) {
            case "even" -> (k, v) -> (Long) v % 2 == 0;
            case "even_or_null" -> (k, v) -> v == null || (Long) v % 2 == 0;
            case "not" -> (k, v) -> !String.valueOf(v).equals(arg);
            case "not_null" -> (k, v) -> v != null;
            case "above_or_null" -> (k, v) -> v == null || number(v) > Double.parseDouble(arg);
            case "above" -> (k, v) -> number(v) > Double.parseDouble(arg);
            case "key_not" -> (k, v) -> !String.valueOf(k).equals(arg);
            default -> throw new IllegalArgumentException("no predicate is called " + call);
        };
    }

    /** Gives a new key or value from both. */
    static KeyValueMapper<Object, Object, Object> mapper(String call) {
        String arg = argument(call);
        return switch (name(call)) {
            case "key" -> (k, v) -> k;
            case "value" -> (k, v) -> v;
            case "null" -> (k, v) -> null;
            case "text" -> (k, v) -> String.valueOf(v);
            case "add" -> (k, v) -> (Long) v + Long.parseLong(arg);
            case "text_or" -> (k, v) -> v == null ? arg : String.valueOf(v);
            case "times" -> (k, v) -> v == null ? null : (Long) v * Long.parseLong(arg);
            case "mod" -> (k, v) -> Math.floorMod((Long) v, Long.parseLong(arg));
            case "mod_text" -> (k, v) -> String.valueOf(Math.floorMod((Long) v, Long.parseLong(arg)));
            case "part" -> (k, v) -> {
                String[] parts = ((String) v).split(" ");
                int i = Integer.parseInt(arg);
                return i < parts.length ? parts[i] : null;
            };
            case "null_if" -> (k, v) -> arg.equals(v) ? null : v;
            case "length" -> (k, v) -> (long) ((String) v).length();
            case "key_and_value" -> (k, v) -> k + "=" + v;
            default -> throw new IllegalArgumentException("no mapper is called " + call);
        };
    }

    static KeyValueMapper<Object, Object, Iterable<Object>> list(String call) {
        return switch (name(call)) {
            case "split" -> (k, v) -> new ArrayList<>(List.of(((String) v).split(" ", -1)));
            default -> throw new IllegalArgumentException("no list is called " + call);
        };
    }

    static Reducer<Object> reducer(String call) {
        String arg = argument(call);
        return switch (name(call)) {
            case "sum" -> Functions::add;
            case "sum_or_null" -> (a, v) -> v == null ? null : add(a, v);
            case "minus" -> Functions::subtract;
            case "min" -> (a, v) -> number(v) < number(a) ? v : a;
            case "max" -> (a, v) -> number(v) > number(a) ? v : a;
            case "last" -> (a, v) -> v;
            case "first" -> (a, v) -> a;
            case "concat" -> (a, v) -> a + "," + v;
            case "concat_to" -> (a, v) -> ((String) a).length() > Integer.parseInt(arg) ? v : a + "," + v;
            case "sum_until" -> (a, v) -> {
                Object sum = add(a, v);
                return number(sum) > Double.parseDouble(arg) ? null : sum;
            };
            default -> throw new IllegalArgumentException("no reducer is called " + call);
        };
    }

    static ValueJoiner<Object, Object, Object> joiner(String call) {
        return switch (name(call)) {
            case "concat" -> (l, r) -> l + "|" + r;
            case "sum" -> Functions::add;
            default -> throw new IllegalArgumentException("no joiner is called " + call);
        };
    }

    static Object add(Object a, Object b) {
        return a instanceof Long x ? (Object) (x + (Long) b) : (Object) ((Double) a + (Double) b);
    }

    static Object subtract(Object a, Object b) {
        return a instanceof Long x ? (Object) (x - (Long) b) : (Object) ((Double) a - (Double) b);
    }

    private static double number(Object v) {
        return ((Number) v).doubleValue();
    }
}
