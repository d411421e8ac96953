import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Kafka's own consumer, one for each protocol, in a group of the protocol's name.
 *
 * <p>Arguments: address, topic. It says: PROTOCOL assigned COUNT | PROTOCOL lost COUNT | PROTOCOL
 * read PARTITION OFFSET | PROTOCOL failed ERROR. Whatever was read is committed before the next poll.
 */
public class GroupReaders {
    public static void main(String[] arguments) {
        for (String protocol : List.of("classic", "consumer")) {
            new Thread(() -> read(arguments[0], arguments[1], protocol)).start();
        }
    }

    private static void read(String address, String topic, String protocol) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", address);
        properties.put("group.id", protocol);
        properties.put("group.protocol", protocol);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(properties, bytes, bytes)) {
            consumer.subscribe(List.of(topic), new Listener(protocol));
            while (true) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(100));
                for (ConsumerRecord<byte[], byte[]> each : records) {
                    say(protocol + " read " + each.partition() + " " + each.offset());
                }
                if (!records.isEmpty()) consumer.commitSync(Duration.ofMinutes(2));
            }
        } catch (RuntimeException error) {
            say(protocol + " failed " + error.toString().replace('\n', ' '));
        }
    }

    private record Listener(String protocol) implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            say(protocol + " assigned " + partitions.size());
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            say(protocol + " lost " + partitions.size());
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }
}
