import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A plain consumer of Kafka's Java client, with transactions; see package plain. The strategy "default" is the client's own, "broker" has the brokers assign (KIP-848). */
public class Plain {
    static final Map<String, String> STRATEGIES = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "sticky", "org.apache.kafka.clients.consumer.StickyAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    public static void main(String[] args) throws Exception {
        String group = args[1], in = args[2], out = args[3];
        Properties read = new Properties();
        read.put("bootstrap.servers", args[0]);
        read.put("group.id", group);
        read.put("enable.auto.commit", "false");
        read.put("auto.offset.reset", "earliest");
        read.put("isolation.level", "read_committed");
        read.put("key.deserializer", ByteArrayDeserializer.class.getName());
        read.put("value.deserializer", ByteArrayDeserializer.class.getName());
        if (args[4].equals("broker")) {
            read.put("group.protocol", "consumer");
        } else {
            read.put("heartbeat.interval.ms", "1000");
        }
        if (STRATEGIES.containsKey(args[4])) {
            read.put("partition.assignment.strategy", STRATEGIES.get(args[4]));
        }
        Properties write = new Properties();
        write.put("bootstrap.servers", args[0]);
        write.put("transactional.id", group + "-java-" + ProcessHandle.current().pid());
        write.put("key.serializer", ByteArraySerializer.class.getName());
        write.put("value.serializer", ByteArraySerializer.class.getName());
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(read);
        Thread main = Thread.currentThread();
        Thread ending = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
                consumer.wakeup();
                main.join();
            } catch (Exception e) {
                e.printStackTrace();
            }
        });
        ending.setDaemon(true);
        ending.start();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(write)) {
            producer.initTransactions();
            ConsumerRebalanceListener listener = new ConsumerRebalanceListener() {
                void tell() {
                    System.out.println("assigned " + consumer.assignment().size() + " " + consumer.groupMetadata().generationId());
                }

                public void onPartitionsRevoked(Collection<TopicPartition> lost) { }

                public void onPartitionsAssigned(Collection<TopicPartition> added) { tell(); }
            };
            consumer.subscribe(List.of(in), listener);
            while (true) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                try {
                    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                    for (ConsumerRecord<byte[], byte[]> r : records) {
                        producer.send(new ProducerRecord<>(out, r.key(), r.value()));
                        offsets.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
                    }
                    producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                    producer.commitTransaction();
                } catch (CommitFailedException overtaken) { // by a rebalance
                    producer.abortTransaction();
                    consumer.committed(consumer.assignment()).forEach((tp, at) -> consumer.seek(tp, at == null ? 0 : at.offset()));
                }
            }
        } catch (WakeupException end) {
            // all that was read is committed
        } finally {
            consumer.close();
        }
    }
}
