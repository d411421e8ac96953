import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's command line tools, one after the other in one Java machine.
 *
 * <p>It hears one line for each run: how many bytes of input follow, main class and arguments,
 * separated by tabs. It answers with a line of three numbers, exit code and the bytes of output and
 * errors, and then these bytes.
 *
 * <p>Each run has the classes of the tools anew, because some keep counts in static fields.
 */
public class ToolMachine {
    private static final PrintStream answers = System.out;
    private static final Printed output = new Printed();
    private static final Printed errors = new Printed();

    private static Ended first;

    /** What was printed. Scala and the logger keep the stream that they find first, for all runs. */
    private static class Printed extends OutputStream {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int each) {
            bytes.write(each);
        }

        @Override
        public synchronized void write(byte[] some, int start, int count) {
            bytes.write(some, start, count);
        }

        synchronized byte[] take() {
            byte[] taken = bytes.toByteArray();
            bytes.reset();
            return taken;
        }
    }

    /** A tool wants to end its process; some catch it and want it once more, with another code. */
    private static class Ended extends RuntimeException {
        final int code;

        Ended(int code, String message) {
            super(message, null, false, false);
            this.code = code;
        }
    }

    /** Has the classes of org.apache.kafka.tools of its own, the others together with everybody. */
    private static class OwnTools extends URLClassLoader {
        OwnTools(URL[] jars) {
            super(jars, ToolMachine.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("org.apache.kafka.tools.")) return super.loadClass(name, resolve);
            Class<?> known = findLoadedClass(name);
            return known == null ? findClass(name) : known;
        }
    }

    public static void main(String[] arguments) throws Exception {
        Exit.setExitProcedure((code, message) -> { throw ended(code, message); });
        Exit.setHaltProcedure((code, message) -> { throw ended(code, message); });
        Exit.setShutdownHookAdder((name, hook) -> { });
        InputStream input = new BufferedInputStream(System.in);
        System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
        for (String line = line(input); line != null; line = line(input)) {
            String[] words = line.split("\t", -1);
            System.setIn(new ByteArrayInputStream(input.readNBytes(Integer.parseInt(words[0]))));
            answer(words[1], Arrays.copyOfRange(words, 2, words.length));
        }
        Runtime.getRuntime().halt(0);
    }

    private static String line(InputStream input) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (int each = input.read(); each != '\n'; each = input.read()) {
            if (each < 0) return null;
            bytes.write(each);
        }
        return bytes.toString(StandardCharsets.UTF_8);
    }

    private static Ended ended(int code, String message) {
        if (first == null) first = new Ended(code, message);
        return first;
    }

    private static void answer(String tool, String[] arguments) throws Exception {
        output.take();
        errors.take();
        int code = run(tool, arguments);
        System.out.flush();
        System.err.flush();
        byte[] said = output.take();
        byte[] complained = errors.take();
        answers.printf("%d %d %d%n", code, said.length, complained.length);
        answers.write(said);
        answers.write(complained);
        answers.flush();
    }

    private static int run(String tool, String[] arguments) throws Exception {
        String[] paths = System.getProperty("java.class.path").split(java.io.File.pathSeparator);
        URL[] jars = new URL[paths.length];
        for (int i = 0; i < paths.length; i++) jars[i] = Path.of(paths[i]).toUri().toURL();
        first = null;
        try (OwnTools tools = new OwnTools(jars)) {
            Thread.currentThread().setContextClassLoader(tools);  // parsers are found by their name
            tools.loadClass(tool)
                    .getMethod("main", String[].class)
                    .invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException thrown) {
            if (first == null) {
                thrown.getCause().printStackTrace();
                return 1;
            }
            if (first.getMessage() != null) System.err.println(first.getMessage());
            return first.code;
        }
    }
}
