package streams;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.StateRestoreListener;

/** Says how much was restored, and in what time, whenever no store is being restored any more. */
final class Restores implements StateRestoreListener {
    private int open;
    private long began;
    private long records;

    @Override
    public synchronized void onRestoreStart(TopicPartition partition, String store, long from, long to) {
        if (open == 0) {
            began = System.nanoTime();
            records = 0;
        }
        open++;
    }

    @Override
    public void onBatchRestored(TopicPartition partition, String store, long end, long count) {}

    @Override
    public synchronized void onRestoreEnd(TopicPartition partition, String store, long total) {
        records += total;
        end();
    }

    @Override
    public synchronized void onRestoreSuspended(TopicPartition partition, String store, long total) {
        end();
    }

    private void end() {
        open--;
        if (open == 0) {
            Peer.say("restored records=" + records + " ms=" + (System.nanoTime() - began) / 1_000_000);
        }
    }
}
