import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Scanner;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A report's lines, written to PostgreSQL by one holder at a time; what was cut short goes on at its next line.
 *
 * <p>Java 17 or newer, which has Unix sockets, its standard library, and psql. docs/applications.md explains it.
 */
public final class Report {
    /** For what has no other limit. */
    private static final long PATIENCE = TimeUnit.SECONDS.toNanos(5);

    private static final ScheduledExecutorService TIMER = Executors.newSingleThreadScheduledExecutor(task -> {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    });

    /** Completes with the reason when the work must stop. */
    private static final CompletableFuture<String> CANCELLED = new CompletableFuture<>();

    /** The end of the work before it is complete. */
    private static final class Stop extends Exception {
        private static final long serialVersionUID = 1;
        final int code;

        Stop(int code, String why) {
            super(why);
            this.code = code;
        }
    }

    /** Sends a request. HTTP/1.0, since its answer is plain text up to the end of the connection. */
    private static void send(SocketChannel sidecar, String method, String path, String body) throws IOException {
        sidecar.connect(UnixDomainSocketAddress.of(System.getenv("FENCEDLEASE_SOCKET")));
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        String head = method + " " + path + " HTTP/1.0\r\nHost: lease\r\nContent-Length: " + bytes.length + "\r\n\r\n";
        sidecar.write(ByteBuffer.wrap((head + body).getBytes(StandardCharsets.UTF_8)));
    }

    /** The JSON of an answer. */
    private static String ask(String method, String path, String body) throws IOException {
        try (SocketChannel sidecar = SocketChannel.open(StandardProtocolFamily.UNIX)) {
            ScheduledFuture<?> patience = closeAt(sidecar, System.nanoTime() + PATIENCE);
            send(sidecar, method, path, body);
            byte[] answer = Channels.newInputStream(sidecar).readAllBytes();
            patience.cancel(false);
            return body(new String(answer, StandardCharsets.UTF_8));
        } catch (AsynchronousCloseException closed) {
            throw new IOException("the sidecar did not answer within 5 s", closed);
        }
    }

    /** What comes after the headers, once it is known to be whole: half a JSON may look like a yes. */
    private static String body(String answer) throws IOException {
        int end = answer.indexOf("\r\n\r\n");
        if (end < 0) {
            throw new IOException("the sidecar's answer broke off: " + (answer.isEmpty() ? "nothing came" : answer));
        }
        String head = answer.substring(0, end).toLowerCase(Locale.ROOT);
        failIfChunked(head);
        Matcher declared = Pattern.compile("\r\ncontent-length: *([0-9]+)").matcher(head);
        long length = declared.find() ? Long.parseLong(declared.group(1)) : 0;
        String body = answer.substring(end + 4);
        int came = body.getBytes(StandardCharsets.UTF_8).length;
        if (came != length) {
            throw new IOException("the sidecar's answer broke off: " + came + " of " + length + " bytes came");
        }
        return body;
    }

    private static void failIfChunked(String header) throws IOException {
        if (header.contains("transfer-encoding:")) {
            throw new IOException("the answer comes in chunks, which HTTP/1.0 does not have: FENCEDLEASE_SOCKET is not "
                    + "the sidecar's own socket, but something in between");
        }
    }

    private static ScheduledFuture<?> closeAt(SocketChannel sidecar, long instant) {
        return TIMER.schedule(() -> close(sidecar), instant - System.nanoTime(), TimeUnit.NANOSECONDS);
    }

    private static void close(SocketChannel sidecar) {
        try {
            sidecar.close();
        } catch (IOException closed) {
            CANCELLED.complete("the sidecar cannot be heard: " + closed);
        }
    }

    /** A field of the sidecar's JSON, which is flat. A library for JSON stands here in your program. */
    private static String field(String json, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":\"?([^\",}]*)").matcher(json);
        return found.find() ? found.group(1) : "";
    }

    /** Cancels when the lease is lost or given back, and when the sidecar cannot be heard. */
    private static void watch(String fence) {
        try (SocketChannel sidecar = SocketChannel.open(StandardProtocolFamily.UNIX)) {
            long asked = System.nanoTime();
            long until = asked + PATIENCE;
            ScheduledFuture<?> silence = closeAt(sidecar, until);
            send(sidecar, "GET", "/v1/events", "");
            Scanner lines = new Scanner(Channels.newInputStream(sidecar), StandardCharsets.UTF_8);
            boolean first = true;
            while (lines.hasNextLine()) {
                String event = lines.nextLine();
                long heard = System.nanoTime();
                String state = field(event, "state");
                boolean holds = state.equals("ACTIVE") && field(event, "fence").equals(fence);
                if (!state.isEmpty() && (!holds || !field(event, "ending").isEmpty())) {
                    CANCELLED.complete(state + " " + field(event, "reason") + field(event, "ending"));
                }
                if (heard - until >= 0) {
                    break;
                }
                String left = field(event, "remainingMs");
                if (left.isEmpty()) {
                    failIfChunked(event.toLowerCase(Locale.ROOT));
                    continue;
                }
                // The first is the answer to a question, however late it is.
                until = (first ? asked : heard) + TimeUnit.MILLISECONDS.toNanos(Long.parseLong(left));
                first = false;
                silence.cancel(false);
                silence = closeAt(sidecar, until);
            }
            CANCELLED.complete("the sidecar closed the stream of events, or was silent for too long");
        } catch (IOException | RuntimeException gone) {
            CANCELLED.complete("the sidecar cannot be heard: " + gone);
        }
    }

    private static final String WRITE = """
            BEGIN;
            SELECT fencedlease.use_fence(:'resource', :'fence', :'holder');
            INSERT INTO report (run, line, fence) VALUES (:'run', :'line', :'fence') ON CONFLICT DO NOTHING;
            COMMIT;
            """;

    /** psql stands for JDBC, where the code is SQLException.getSQLState(). */
    private static String psql(String sql, long until, String... variables) throws Exception {
        List<String> command = new ArrayList<>(List.of("psql", "-XqAt"));
        command.addAll(List.of("-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"));
        for (String variable : variables) {
            command.addAll(List.of("-v", variable));
        }
        command.add(System.getenv("REPORT_DATABASE"));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        process.outputWriter().append(sql).close();
        if (!process.waitFor(until - System.nanoTime(), TimeUnit.NANOSECONDS)) {
            process.destroyForcibly();
            throw new TimeoutException();
        }
        String answer = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
        if (process.exitValue() != 0 && !answer.contains("FL001")) {
            throw new Stop(1, answer);
        }
        return answer;
    }

    private static void commit(String lease, int line) throws Exception {
        String fence = field(lease, "fence");
        String check = "{\"fence\":" + fence + ",\"needMs\":" + System.getenv("REPORT_NEED_MS") + "}";
        long asked = System.nanoTime();
        String verdict = ask("POST", "/v1/commit-check", check);
        if (!field(verdict, "allowed").equals("true")) {
            throw new Stop(11, "too late: " + verdict);
        }
        // Counted from the question, however late the answer is.
        long until = asked + TimeUnit.MILLISECONDS.toNanos(Long.parseLong(field(verdict, "remainingMs")));
        if (System.nanoTime() - until >= 0) {
            throw new Stop(11, "too late: the answer came when nothing remained");
        }
        String answer;
        try {
            answer = psql(WRITE, until, "resource=" + field(lease, "resource"), "fence=" + fence,
                    "holder=" + field(lease, "holding"), "run=" + System.getenv("REPORT_RUN"), "line=" + line);
        } catch (TimeoutException late) {
            throw new Stop(13, "unknown: the database did not confirm in time");
        }
        if (answer.contains("FL001")) {
            try {
                ask("POST", "/v1/fence-rejected", "{\"fence\":" + fence + ",\"resourceKind\":\"postgresql\"}");
            } catch (IOException unheard) {
                System.err.println("the refusal could not be reported: " + unheard);
            }
            throw new Stop(12, "refused: " + answer.lines().findFirst().orElse(""));
        }
    }

    private static String nextLine() throws Exception {
        String query = "SELECT coalesce(max(line), 0) + 1 FROM report WHERE run = :'run';";
        try {
            return psql(query, System.nanoTime() + PATIENCE, "run=" + System.getenv("REPORT_RUN"));
        } catch (TimeoutException silent) {
            throw new Stop(1, "the database did not answer within 5 s");
        }
    }

    private static Stop work() throws Exception {
        String lease = ask("GET", "/v1/lease", "");
        if (!field(lease, "state").equals("ACTIVE")) {
            return new Stop(10, "cancelled: " + field(lease, "state"));
        }
        Thread watcher = new Thread(() -> watch(field(lease, "fence")));
        watcher.setDaemon(true);
        watcher.start();

        String from = System.getenv("REPORT_FROM");
        if (from == null) {
            from = nextLine();
        }
        int lines = Integer.parseInt(System.getenv("REPORT_LINES"));
        long pauseMs = Long.parseLong(System.getenv("REPORT_LINE_MS"));
        for (int line = Integer.parseInt(from); line <= lines; line++) {
            try {
                return new Stop(10, "cancelled: " + CANCELLED.get(pauseMs, TimeUnit.MILLISECONDS));
            } catch (TimeoutException worked) {
                // The wait stands for the work of a line, and it was not cut short.
                commit(lease, line);
            }
        }
        return new Stop(0, "complete");
    }

    public static void main(String[] arguments) throws Exception {
        CompletableFuture<Integer> done = new CompletableFuture<>();
        // SIGTERM comes at a loss too, and before a planned end. The JVM would end without waiting for the work.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            CANCELLED.complete("SIGTERM");
            try {
                Runtime.getRuntime().halt(done.get(10, TimeUnit.SECONDS));
            } catch (Exception late) {
                Runtime.getRuntime().halt(1);
            }
        }));
        Stop end;
        try {
            end = work();
        } catch (Stop early) {
            end = early;
        } catch (Exception failed) {
            end = new Stop(1, failed.toString());
        }
        System.out.println(end.getMessage());
        System.out.flush();
        done.complete(end.code);
        System.exit(end.code);
    }
}
