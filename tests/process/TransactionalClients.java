import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's own clients in transactions: each line is a command, and is answered by one line.
 *
 * <p>It hears: producer NAME key=value ... | init NAME | begin NAME | send NAME TOPIC PARTITION VALUE
 * | offsets NAME MEMBER TOPIC PARTITION:OFFSET ... | commit NAME | abort NAME | close NAME | member
 * NAME TOPIC key=value ... | take NAME COUNT | leave NAME | read TOPIC PARTITIONS key=value ...
 *
 * <p>It says: ok PARTITION:OFFSET:VALUE ... | failed CLASS ... (with the causes' classes)
 */
public class TransactionalClients {
    private static final Duration LONG = Duration.ofMinutes(2);
    private static final Duration SHORT = Duration.ofMillis(100);
    private static final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();
    private static final Map<String, KafkaConsumer<String, String>> members = new HashMap<>();
    private static final Map<String, List<String>> left = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader input =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        say("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            try {
                say(("ok " + String.join(" ", answer(words))).trim());
            } catch (Exception error) {
                say("failed " + names(error));
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static List<String> answer(String[] words) throws Exception {
        String name = words[1];
        switch (words[0]) {
            case "producer" -> producers.put(name, producer(words));
            case "init" -> producers.get(name).initTransactions();
            case "begin" -> producers.get(name).beginTransaction();
            case "send" -> {
                int partition = Integer.parseInt(words[3]);
                ProducerRecord<String, String> record =
                        new ProducerRecord<>(words[2], partition, null, words[4]);
                producers.get(name).send(record).get();
            }
            case "offsets" -> sendOffsets(words);
            case "commit" -> producers.get(name).commitTransaction();
            case "abort" -> producers.get(name).abortTransaction();
            case "close" -> producers.remove(name).close(Duration.ZERO);
            case "member" -> join(words);
            case "take" -> {
                return take(name, Integer.parseInt(words[2]));
            }
            case "leave" -> members.remove(name).close();
            case "read" -> {
                return read(words);
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
        return List.of();
    }

    private static Properties settings(String[] words, int from) {
        Properties properties = new Properties();
        for (int i = from; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            properties.put(pair[0], pair[1]);
        }
        return properties;
    }

    private static KafkaProducer<String, String> producer(String[] words) {
        return new KafkaProducer<>(
                settings(words, 2), new StringSerializer(), new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(String[] words) {
        return new KafkaConsumer<>(
                settings(words, 3), new StringDeserializer(), new StringDeserializer());
    }

    private static void sendOffsets(String[] words) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (int i = 4; i < words.length; i++) {
            String[] pair = words[i].split(":");
            offsets.put(
                    new TopicPartition(words[3], Integer.parseInt(pair[0])),
                    new OffsetAndMetadata(Long.parseLong(pair[1])));
        }
        producers
                .get(words[1])
                .sendOffsetsToTransaction(offsets, members.get(words[2]).groupMetadata());
    }

    private static void join(String[] words) {
        KafkaConsumer<String, String> consumer = consumer(words);
        consumer.subscribe(List.of(words[2]));
        members.put(words[1], consumer);
        left.put(words[1], new ArrayList<>());
    }

    private static List<String> take(String name, int count) {
        List<String> found = left.get(name);
        long endNs = System.nanoTime() + LONG.toNanos();
        while (found.size() < count && System.nanoTime() < endNs) {
            members.get(name).poll(SHORT).forEach(each -> found.add(text(each)));
        }
        if (found.size() < count) throw new IllegalStateException("too few records");
        List<String> taken = new ArrayList<>(found.subList(0, count));
        found.subList(0, count).clear();
        return taken;
    }

    private static List<String> read(String[] words) {
        List<String> found = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = consumer(words)) {
            List<TopicPartition> wanted = new ArrayList<>();
            for (int i = 0; i < Integer.parseInt(words[2]); i++) {
                wanted.add(new TopicPartition(words[1], i));
            }
            consumer.assign(wanted);
            consumer.seekToBeginning(wanted);
            Map<TopicPartition, Long> ends = consumer.endOffsets(wanted, LONG);
            long endNs = System.nanoTime() + LONG.toNanos();
            while (wanted.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                if (System.nanoTime() > endNs) throw new IllegalStateException("no end");
                consumer.poll(SHORT).forEach(each -> found.add(text(each)));
            }
        }
        return found;
    }

    private static String text(ConsumerRecord<String, String> record) {
        return record.partition() + ":" + record.offset() + ":" + record.value();
    }

    private static String names(Throwable error) {
        List<String> names = new ArrayList<>();
        for (Throwable each = error; each != null; each = each.getCause()) {
            names.add(each.getClass().getSimpleName());
        }
        return String.join(" ", names) + " " + String.valueOf(error.getMessage()).replace('\n', ' ');
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
