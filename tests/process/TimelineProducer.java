import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own producer, told by lines what to do, telling by lines what became of it.
 *
 * <p>It hears: open NAME key=value ... | send NAME CALL TOPIC PARTITION VALUE SIZE | available NAME |
 * close NAME
 *
 * <p>It says: opened NAME [ERROR] | returned CALL MILLISECONDS | threw CALL ERROR | ok CALL OFFSET |
 * failed CALL ERROR | available NAME BYTES | close NAME
 *
 * <p>A send that blocks keeps only the sends of its own producer waiting.
 */
public class TimelineProducer {
    private static final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private static final Map<String, ExecutorService> callers = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader input =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        say("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "open" -> open(words);
                case "send" -> callers.get(words[1]).submit(() -> send(words));
                case "available" -> available(words[1]);
                case "close" -> close(words[1]);
                default -> throw new IllegalArgumentException(line);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static void open(String[] words) {
        Properties properties = new Properties();
        for (int i = 2; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            properties.put(pair[0], pair[1]);
        }
        try {
            producers.put(
                    words[1],
                    new KafkaProducer<>(
                            properties, new ByteArraySerializer(), new ByteArraySerializer()));
        } catch (KafkaException error) {
            say("opened " + words[1] + " " + name(error));
            return;
        }
        callers.put(words[1], Executors.newSingleThreadExecutor());
        say("opened " + words[1]);
    }

    private static void send(String[] words) {
        String call = words[2];
        StringBuilder value = new StringBuilder(words[5]);
        while (value.length() < Integer.parseInt(words[6])) {
            value.append('.');
        }
        byte[] bytes = value.toString().getBytes(StandardCharsets.UTF_8);
        long startedNs = System.nanoTime();
        try {
            producers
                    .get(words[1])
                    .send(
                            new ProducerRecord<>(
                                    words[3], Integer.parseInt(words[4]), null, bytes),
                            (metadata, error) ->
                                    say(
                                            error == null
                                                    ? "ok " + call + " " + metadata.offset()
                                                    : "failed " + call + " " + name(error)));
        } catch (RuntimeException error) {
            say("threw " + call + " " + name(error));
            return;
        }
        say("returned " + call + " " + (System.nanoTime() - startedNs) / 1_000_000);
    }

    private static void available(String name) {
        producers.get(name).metrics().forEach(
                (metric, value) -> {
                    if (metric.name().equals("buffer-available-bytes")) {
                        say("available " + name + " " + ((Double) value.metricValue()).longValue());
                    }
                });
    }

    private static void close(String name) {
        callers.remove(name).shutdownNow();
        producers.remove(name).close(Duration.ZERO);
        say("close " + name);
    }

    private static String name(Exception error) {
        return error.getClass().getSimpleName();
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
