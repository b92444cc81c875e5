import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
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
 * <p>Java 16 or newer, which has Unix sockets, its standard library, and psql. docs/applications.md explains it.
 */
public final class Report {
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
    private static SocketChannel send(String method, String path, String body) throws IOException {
        SocketChannel sidecar = SocketChannel.open(StandardProtocolFamily.UNIX);
        sidecar.connect(UnixDomainSocketAddress.of(System.getenv("FENCEDLEASE_SOCKET")));
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        String head = method + " " + path + " HTTP/1.0\r\nHost: lease\r\nContent-Length: " + bytes.length + "\r\n\r\n";
        sidecar.write(ByteBuffer.wrap((head + body).getBytes(StandardCharsets.UTF_8)));
        return sidecar;
    }

    /** The whole answer: its status line, headers and JSON. */
    private static String ask(String method, String path, String body) throws IOException {
        try (SocketChannel sidecar = send(method, path, body)) {
            ScheduledFuture<?> patience = TIMER.schedule(() -> close(sidecar), 5, TimeUnit.SECONDS);
            String answer = new String(Channels.newInputStream(sidecar).readAllBytes(), StandardCharsets.UTF_8);
            patience.cancel(false);
            return answer;
        }
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
        try (SocketChannel sidecar = send("GET", "/v1/events", "")) {
            Scanner lines = new Scanner(Channels.newInputStream(sidecar), StandardCharsets.UTF_8);
            ScheduledFuture<?> silence = TIMER.schedule(() -> close(sidecar), 5, TimeUnit.SECONDS);
            while (lines.hasNextLine()) {
                String event = lines.nextLine();
                String state = field(event, "state");
                if (!field(event, "remainingMs").isEmpty()) {
                    silence.cancel(false);
                    long left = Long.parseLong(field(event, "remainingMs"));
                    silence = TIMER.schedule(() -> close(sidecar), left, TimeUnit.MILLISECONDS);
                }
                boolean holds = state.equals("ACTIVE") && field(event, "fence").equals(fence);
                if (!state.isEmpty() && (!holds || !field(event, "ending").isEmpty())) {
                    CANCELLED.complete(state + " " + field(event, "reason") + field(event, "ending"));
                }
            }
            CANCELLED.complete("the sidecar closed the stream of events, or was silent");
        } catch (IOException gone) {
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
    private static String psql(String sql, long limitMs, String... variables) throws Exception {
        List<String> command = new ArrayList<>(List.of("psql", "-XqAt"));
        command.addAll(List.of("-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"));
        for (String variable : variables) {
            command.addAll(List.of("-v", variable));
        }
        command.add(System.getenv("REPORT_DATABASE"));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        process.outputWriter().append(sql).close();
        if (!process.waitFor(limitMs, TimeUnit.MILLISECONDS)) {
            process.destroyForcibly();
            throw new Stop(13, "unknown: the database did not confirm in time");
        }
        return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
    }

    private static void commit(String lease, int line) throws Exception {
        String fence = field(lease, "fence");
        String check = "{\"fence\":" + fence + ",\"needMs\":" + System.getenv("REPORT_NEED_MS") + "}";
        String verdict = ask("POST", "/v1/commit-check", check);
        if (!field(verdict, "allowed").equals("true")) {
            throw new Stop(11, "too late: " + verdict.substring(verdict.indexOf("\r\n\r\n") + 4));
        }
        String answer = psql(WRITE, Long.parseLong(field(verdict, "remainingMs")),
                "resource=" + field(lease, "resource"), "fence=" + fence, "holder=" + field(lease, "holding"),
                "run=" + System.getenv("REPORT_RUN"), "line=" + line);
        if (answer.contains("FL001")) {
            ask("POST", "/v1/fence-rejected", "{\"fence\":" + fence + ",\"resourceKind\":\"postgresql\"}");
            throw new Stop(12, "refused: " + answer.lines().findFirst().orElse(""));
        }
        if (answer.contains("ERROR") || answer.contains("FATAL")) {
            throw new Stop(1, answer);
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
            String query = "SELECT coalesce(max(line), 0) + 1 FROM report WHERE run = :'run';";
            from = psql(query, 5000, "run=" + System.getenv("REPORT_RUN"));
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
