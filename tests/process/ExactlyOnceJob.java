import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A job that reads, transforms and writes in transactions with Kafka's own clients, until it is
 * killed. Arguments and words are those of exactly_once_job.py; what it cannot abort ends it.
 */
public class ExactlyOnceJob {
    private static KafkaConsumer<String, String> consumer;
    private static KafkaProducer<String, String> producer;

    public static void main(String[] arguments) {
        String name = arguments[3];
        Properties reading = new Properties();
        reading.put("bootstrap.servers", arguments[0]);
        reading.put("group.id", name);
        reading.put("group.protocol", "classic");
        reading.put("group.instance.id", name); // the next one takes over at once
        reading.put("isolation.level", "read_committed");
        reading.put("auto.offset.reset", "earliest");
        reading.put("enable.auto.commit", "false");
        reading.put("max.poll.records", "750");
        Properties writing = new Properties();
        writing.put("bootstrap.servers", arguments[0]);
        writing.put("transactional.id", name);
        writing.put("max.block.ms", "120000");
        consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
        producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer());
        consumer.subscribe(List.of(arguments[1]));
        producer.initTransactions();
        while (true) {
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
            if (!records.isEmpty()) write(records, arguments[2]);
        }
    }

    private static void write(ConsumerRecords<String, String> records, String target) {
        producer.beginTransaction();
        try {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (ConsumerRecord<String, String> each : records) {
                producer.send(
                        new ProducerRecord<>(target, each.partition(), null, each.value() + "!"));
                offsets.put(
                        new TopicPartition(each.topic(), each.partition()),
                        new OffsetAndMetadata(each.offset() + 1));
            }
            say("begun " + records.count());
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            commit();
        } catch (KafkaException error) {
            producer.abortTransaction();
            for (TopicPartition each : records.partitions()) {
                consumer.seek(each, records.records(each).get(0).offset());
            }
            say("aborted " + error.getClass().getSimpleName());
            return;
        }
        say("committed " + records.count());
    }

    /** A commit whose outcome is unknown is tried again, as its documentation asks for. */
    private static void commit() {
        while (true) {
            try {
                producer.commitTransaction();
                return;
            } catch (TimeoutException timeout) {
                say("waiting " + timeout.getClass().getSimpleName());
            }
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
