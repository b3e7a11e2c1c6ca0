package streams;

import java.util.HashSet;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.StandbyUpdateListener;
import org.apache.kafka.streams.processor.TaskId;

/**
 * Says how much warm-up tasks have read, and in what time, when the last of them has come so close to its changelog's
 * end that it may become active. What they read afterwards is not counted.
 */
final class WarmUps implements StandbyUpdateListener {
    /** The default of acceptable.recovery.lag, and streamworker's. */
    private static final long ACCEPTABLE_LAG = 10_000;

    private final Set<TopicPartition> behind = new HashSet<>();
    private long began;
    private long records;

    @Override
    public synchronized void onUpdateStart(TopicPartition partition, String store, long from) {
        if (behind.isEmpty()) {
            began = System.nanoTime();
            records = 0;
        }
        behind.add(partition);
    }

    @Override
    public synchronized void onBatchLoaded(TopicPartition partition, String store, TaskId task, long offset, long count, long end) {
        if (!behind.contains(partition)) {
            return;
        }
        records += count;
        if (end - offset <= ACCEPTABLE_LAG) {
            there(partition);
        }
    }

    @Override
    public synchronized void onUpdateSuspended(TopicPartition partition, String store, long offset, long end, SuspendReason why) {
        there(partition);
    }

    private void there(TopicPartition partition) {
        if (behind.remove(partition) && behind.isEmpty()) {
            Peer.say("learned records=" + records + " ms=" + (System.nanoTime() - began) / 1_000_000);
        }
    }
}
