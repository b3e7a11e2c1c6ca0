package streams;

import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.Metric;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;

/**
 * Runs a job until SIGTERM: {@code Peer JOB SETTINGS INPUT OUTPUT EXPECT}. SETTINGS is a file with properties of
 * Kafka Streams. It prints one line for each thing that the benchmark waits for: running (again after each assignment), restored, learned, processed (when
 * EXPECT records are, unless that is 0), closing, closed, failed. It leaves the group when it is stopped: Kafka Streams
 * by itself would let the others wait for the end of its session.
 */
public final class Peer {
    private static final Duration CLOSE_LIMIT = Duration.ofSeconds(60);
    private static final long LOOK_MS = 20;

    private Peer() {}

    public static void main(String[] args) throws Exception {
        Properties settings = load(Path.of(args[1]));
        long expect = Long.parseLong(args[4]);

        KafkaStreams streams = new KafkaStreams(Jobs.of(args[0], args[2], args[3]), settings);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                say("running active=" + active(streams));
            } else if (now == KafkaStreams.State.ERROR) {
                say("failed");
            }
        });
        streams.setGlobalStateRestoreListener(new Restores());
        streams.setStandbyUpdateListener(new WarmUps());
        CountDownLatch closed = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            say("closing active=" + active(streams));
            boolean clean = streams.close(CloseOptions.timeout(CLOSE_LIMIT)
                .withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
            say("closed clean=" + clean);
            closed.countDown();
        }));
        streams.start();
        if (expect > 0) {
            awaitProcessed(streams, expect);
        }
        closed.await();
    }

    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static int active(KafkaStreams streams) {
        return streams.metadataForLocalThreads().stream().mapToInt(thread -> thread.activeTasks().size()).sum();
    }

    private static Properties load(Path file) throws IOException {
        Properties settings = new Properties();
        try (Reader reader = Files.newBufferedReader(file)) {
            settings.load(reader);
        }
        return settings;
    }

    /** Waits until so many records went through the topology. The metrics are looked up until all of them are there. */
    private static void awaitProcessed(KafkaStreams streams, long expect) throws InterruptedException {
        while (true) {
            double total = 0;
            for (Metric metric : streams.metrics().values()) {
                if (metric.metricName().group().equals("stream-thread-metrics") && metric.metricName().name().equals("process-total")) {
                    total += ((Number) metric.metricValue()).doubleValue();
                }
            }
            if (total >= expect) {
                say("processed");
                return;
            }
            Thread.sleep(LOOK_MS);
        }
    }
}
