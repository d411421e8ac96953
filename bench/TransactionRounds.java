import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own producer, one transaction after the other: each line is a command, and is answered by
 * one line.
 *
 * <p>It hears: open SERVERS TRANSACTIONAL_ID | run TOPIC PARTITIONS RECORDS VALUE_BYTES SECONDS | close
 *
 * <p>It says: ready | ok NANOSECONDS ... (of each transaction, from its begin to the answered commit)
 * | failed CLASS MESSAGE
 */
public class TransactionRounds {
    private static KafkaProducer<byte[], byte[]> producer;

    public static void main(String[] arguments) throws Exception {
        BufferedReader input =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        say("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            try {
                say("ok" + answer(words));
            } catch (Exception error) {
                String message = String.valueOf(error.getMessage()).replace('\n', ' ');
                say("failed " + error.getClass().getSimpleName() + " " + message);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "open" -> open(words[1], words[2]);
            case "run" -> {
                return run(
                        words[1],
                        Integer.parseInt(words[2]),
                        Integer.parseInt(words[3]),
                        new byte[Integer.parseInt(words[4])],
                        (long) (Double.parseDouble(words[5]) * 1e9));
            }
            case "close" -> producer.close();
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    private static void open(String servers, String transactionalId) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", servers);
        properties.put("transactional.id", transactionalId);
        producer =
                new KafkaProducer<>(
                        properties, new ByteArraySerializer(), new ByteArraySerializer());
        producer.initTransactions();
    }

    private static String run(
            String topic, int partitions, int records, byte[] value, long durationNs) {
        StringBuilder times = new StringBuilder();
        long startedNs = System.nanoTime();
        long beganNs = startedNs;
        while (beganNs - startedNs < durationNs) {
            producer.beginTransaction();
            for (int i = 0; i < records; i++) {
                producer.send(new ProducerRecord<>(topic, i % partitions, null, value));
            }
            producer.commitTransaction();
            long endedNs = System.nanoTime();
            times.append(' ').append(endedNs - beganNs);
            beganNs = endedNs;
        }
        return times.toString();
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
