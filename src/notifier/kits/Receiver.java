// A receiver of notifications on the JDK, with Gson to read JSON.
// WEBHOOK_SECRET=whsec_… java -cp gson.jar Receiver.java

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Receiver {
    static final byte[] SECRET = System.getenv("WEBHOOK_SECRET").getBytes(StandardCharsets.UTF_8);
    static final long TOLERANCE_S = 300;
    static final int MAX_BODY_BYTES = 1024 * 1024;
    static final int MAX_CALLS = 10_000;

    static class Call {
        int sequence = 0;
        String status = "";
        final Set<String> seen = new HashSet<>();
    }

    // In production, use a table that all receiving processes share. Keep a call's row until no
    // replay of its notifications can arrive.
    static final Map<String, Call> calls = new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Call> eldest) {
            return size() > MAX_CALLS;
        }
    };

    /**
     * Whether the timestamp is recent and one of the signatures matches the raw body. There are two
     * signatures while the secret is being rotated.
     */
    static boolean isSigned(byte[] rawBody, String header) throws GeneralSecurityException {
        String t = "";
        List<String> signatures = new ArrayList<>();
        for (String part : header.split(",")) {
            String[] pair = part.strip().split("=", 2);
            if (pair.length == 2 && pair[0].equals("t")) t = pair[1];
            if (pair.length == 2 && pair[0].equals("v1")) signatures.add(pair[1]);
        }
        if (!t.matches("[0-9]{1,12}")) return false;
        if (Math.abs(System.currentTimeMillis() / 1000 - Long.parseLong(t)) > TOLERANCE_S) return false;
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(SECRET, "HmacSHA256"));
        mac.update((t + ".").getBytes(StandardCharsets.UTF_8));
        StringBuilder hex = new StringBuilder();
        for (byte each : mac.doFinal(rawBody)) hex.append(String.format("%02x", each));
        byte[] expected = hex.toString().getBytes(StandardCharsets.UTF_8);
        return signatures.stream()
            .anyMatch(given -> MessageDigest.isEqual(expected, given.getBytes(StandardCharsets.UTF_8)));
    }

    /** Ignores repetitions, and keeps late notifications from overwriting newer ones. */
    static synchronized String take(JsonObject notification) {
        Call call = calls.computeIfAbsent(notification.get("callId").getAsString(), id -> new Call());
        if (!call.seen.add(notification.get("eventId").getAsString())) return "duplicate";
        int sequence = notification.get("sequence").getAsInt();
        if (sequence < call.sequence) return "late";
        call.sequence = sequence;
        // An event that `notifyEvents` selected is not a status of the call.
        String status = notification.get("status").getAsString();
        if (!status.equals("Event")) call.status = status;
        return "applied";
    }

    static void receive(HttpExchange exchange) throws IOException {
        try (exchange) {
            byte[] rawBody = exchange.getRequestBody().readNBytes(MAX_BODY_BYTES);
            String header = exchange.getRequestHeaders().getFirst("Gateway-Signature");
            if (!isSigned(rawBody, header == null ? "" : header)) {
                exchange.sendResponseHeaders(401, -1);
                return;
            }
            String text = new String(rawBody, StandardCharsets.UTF_8);
            // Respond first and do the work afterwards, because the gateway waits at most 10 s.
            byte[] answer = take(JsonParser.parseString(text).getAsJsonObject()).getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
        } catch (RuntimeException | GeneralSecurityException error) {
            exchange.sendResponseHeaders(400, -1);
        }
    }

    public static void main(String[] arguments) throws IOException {
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "4000"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.createContext("/", Receiver::receive);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.start();
    }
}
