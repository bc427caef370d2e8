package bench;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.io.JsonStringEncoder;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

/** The rules that Claude's stream exercises, applied to one session and one message at a time. */
final class Deriver {
  private static final long NONE = Session.NONE;
  private static final long DEFAULT_WINDOW = 200_000;
  private static final Map<String, Long> CATALOG =
      Map.of("claude-sonnet-4-5", 200_000L, "claude-opus-4-5", 200_000L);
  private static final int DATE = "-20250929".length();
  private static final long GAP_MS = 6 * 3_600_000L;
  private static final char[] HEX = "0123456789abcdef".toCharArray();
  private static final JsonFactory JSON = new JsonFactory();

  // The order of the records of one message.
  private static final int INFO = 0;
  private static final int FAILED = 1;
  private static final int START = 2;
  private static final int PROGRESS = 3;
  private static final int RESET = 4;
  private static final int FORCED = 5;
  private static final int BOUNDARY = 6;
  private static final int SUMMARY = 7;
  private static final int LIMITS = 8;
  private static final int EDIT = 9;
  private static final int READING = 10;
  private static final int COMPLETE = 11;
  private static final int WARNING = 12;
  private static final int EXHAUSTED = 13;

  private enum Event { COMPACTING, SUCCESS, CLEARED, FAILED, BOUNDARY, RESULT, RESET, RESPONSE, GAP }

  /** One record: its place among those of the message, and what it is. */
  record Out(int rank, String id, String kind, String subject, byte[] data) {}

  /** What a boundary or a failure knows of the attempt before it. */
  private record Begin(String id, long own, long live) {}

  private final MessageDigest sha1 = digest("SHA-1");
  private final MessageDigest sha256 = digest("SHA-256");
  private final byte[] namespace;
  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream(4096);

  final List<Out> records = new ArrayList<>();
  String time;

  private Session session;
  private Message message;
  private String sessionId;
  private String cause;
  private long ownMs;
  private long receivedMs;
  private String subject;
  private Session.Chain chain;
  private Session.Chain main;
  private boolean touched;
  private boolean isNews;
  private boolean answered;
  private String firstRead;
  private String wasReset;
  private JsonGenerator json;

  Deriver() {
    byte[] url = uuidBytes("6ba7b811-9dad-11d1-80b4-00c04fd430c8");
    sha1.update(url);
    byte[] hash = sha1.digest("urn:contextgauge:records".getBytes(StandardCharsets.UTF_8));
    hash[6] = (byte) (hash[6] & 0x0f | 0x50);
    hash[8] = (byte) (hash[8] & 0x3f | 0x80);
    namespace = java.util.Arrays.copyOf(hash, 16);
  }

  /** Applies a relevant message; returns the changed session, or null where it is known already. */
  Session derive(Session stored, Message incoming, String key, long received) throws IOException {
    records.clear();
    message = incoming;
    cause = incoming.uuid != null ? incoming.uuid : hex(sha256.digest(incoming.value));
    long hashed = hash(cause);
    session = stored == null ? new Session() : stored;
    if (stored != null && stored.knows(hashed)) {
      return null;
    }
    sessionId = incoming.sessionId != null ? incoming.sessionId : key;
    receivedMs = received;
    touched = isNews = answered = false;
    firstRead = null;
    wasReset = session.reset;
    session.reset = null;
    long timeMs;
    if (incoming.timestamp == null) {
      ownMs = NONE;
      timeMs = received;
      time = rfc3339(received);
    } else {
      timeMs = ownMs = milliseconds(incoming.timestamp);
      time = incoming.timestamp;
    }
    subject = chainName();
    chain = session.chains.computeIfAbsent(subject, name -> new Session.Chain());
    main = session.chains.get("main");
    if (incoming.subagentType != null && !subject.equals("main")) {
      chain.kind = incoming.subagentType;
    }
    long last = session.last;
    session.last = timeMs;
    if (last != NONE && timeMs - last > GAP_MS) {
      move(Event.GAP, null);
    }
    apply();
    session.remember(hashed);
    if (records.size() > 1) {
      records.sort(Comparator.comparingInt(Out::rank));
    }
    session.sequence += records.size();
    return session;
  }

  private String chainName() {
    if (message.parentId == null) {
      return "main";
    }
    if (message.agentId == null) {
      return session.aliases.getOrDefault(message.parentId, message.parentId);
    }
    session.aliases.putIfAbsent(message.parentId, message.agentId);
    return message.agentId;
  }

  private void apply() throws IOException {
    switch (message.type) {
      case "assistant" -> respond();
      case "user" -> user();
      case "stream_event" -> {
        if (message.eventType.equals("message_start")) {
          respond();
        } else if (chain.key != null) {
          chain.output = message.output;
        }
      }
      case "result" -> result();
      case "conversation_reset" -> reset(message.topTrigger == null ? "clear" : message.topTrigger);
      case "control_response" -> control();
      default -> system();
    }
    if (touched) {
      tellLimits();
    }
  }

  private void system() throws IOException {
    switch (message.subtype) {
      case "init" -> init();
      case "compact_boundary" -> bound();
      case "status" -> {
        if (message.status != null) {
          move(Event.COMPACTING, null);
        } else if ("success".equals(message.result)) {
          move(Event.SUCCESS, null);
        } else if ("failed".equals(message.result)) {
          move(Event.FAILED, message.error);
        } else {
          move(Event.CLEARED, null);
        }
      }
      default -> {
        String trigger = message.hookName.substring(message.hookName.lastIndexOf(':') + 1);
        if (trigger.equals("manual") || trigger.equals("auto")) {
          session.hint = trigger;
        }
      }
    }
  }

  private void init() throws IOException {
    Session s = session;
    boolean same = s.hasFacts && same(s.version, message.version)
        && same(s.model, message.topModel) && same(s.cwd, message.cwd);
    if (!same) {
      s.hasFacts = true;
      s.version = message.version;
      s.model = message.topModel;
      s.cwd = message.cwd;
      String id = begin("main", "session_info", s.model, null, false);
      text("runtime", "claude-code");
      text("runtime_version", s.version);
      text("cwd", s.cwd);
      text("forked_from", null);
      end(INFO, id, "session_info", "main");
    }
    String base = baseName(message.topModel);
    long suffix = suffixOf(message.topModel);
    Long known = s.suffixed.get(base);
    if (s.suffix != suffix || (known == null ? NONE : known) != suffix) {
      s.suffix = suffix;
      if (suffix == NONE) {
        s.suffixed.remove(base);
      } else {
        s.suffixed.put(base, suffix);
      }
      touched = true;
    }
    setModel(main, base);
  }

  private void setModel(Session.Chain of, String model) {
    if (!model.equals(of.model)) {
      of.model = model;
      touched = true;
    }
  }

  private long window;
  private String source;

  /** Sets `window` and `source` to a model's. */
  private void findWindow(String model) {
    String name = model == null ? "" : model;
    Long reported = session.windows.get(name);
    if (reported == null) {
      reported = session.raw.get(name);
    }
    if (reported != null) {
      window = reported;
      source = "runtime";
      return;
    }
    if (session.exceeded.contains(name)) {
      window = NONE;
      source = "exceeded";
      return;
    }
    Long listed = session.suffixed.get(name);
    if (listed == null && name.length() > DATE) {
      listed = CATALOG.get(name.substring(0, name.length() - DATE));
    }
    window = listed == null ? DEFAULT_WINDOW : listed;
    source = listed == null ? "default" : "catalog";
  }

  private void respond() throws IOException {
    Session.Chain c = chain;
    setModel(c, baseName(message.model));
    if (!message.messageId.equals(c.key)) {
      if (subject.equals("main")) {
        move(Event.RESPONSE, null);
      }
      c.key = message.messageId;
      c.input = NONE;
      c.edited = false;
      c.before = c.output;
      c.output = NONE;
      count(c);
    }
    if (message.edits != null && !c.edited) {
      c.edited = true;
      String id = begin(subject, "context_edit", c.model, null, false);
      json.writeFieldName("edits");
      json.writeRawValue(message.edits);
      number("cleared_input_tokens", message.cleared);
      end(EDIT, id, "context_edit", subject);
    }
    long used = message.input + message.creation + message.read;
    if (message.input != NONE && used > 0
        && (c.input != message.input || c.creation != message.creation || c.read != message.read)) {
      c.input = message.input;
      c.creation = message.creation;
      c.read = message.read;
      read(used);
    }
  }

  private static void count(Session.Chain c) {
    c.messages++;
    c.since++;
    c.total++;
  }

  private void read(long used) throws IOException {
    Session.Chain c = chain;
    if (!c.reported) {
      touched = true;
      firstRead = subject;
    }
    findWindow(c.model);
    if (window != NONE && used > window && !source.equals("runtime")) {
      session.exceeded.add(c.model == null ? "" : c.model);
      touched = true;
      window = NONE;
      source = "exceeded";
    }
    long limit = window;
    String from = source;
    double percent = limit == NONE ? Double.NaN : used * 10_000 / limit / 100.0;
    String id = begin(subject, "context_reading", c.model, null, false);
    text("response_id", message.messageId);
    number("used_tokens", used);
    number("input_tokens", c.input);
    number("cache_creation_tokens", c.creation);
    number("cache_read_tokens", c.read);
    number("previous_output_tokens", c.before);
    number("window", limit);
    text("window_source", from);
    percent("used_percent", percent);
    number("messages", c.messages);
    number("messages_total", c.total);
    if (message.creationOneHour != NONE) {
      number("cache_creation_1h_tokens", message.creationOneHour);
    }
    end(READING, id, "context_reading", subject);
    complete(used);
    c.used = used;
    c.percent = percent;
    c.awaitedId = c.awaitedAnchor = c.pendingId = null;
    if (limit == NONE) {
      return;
    }
    int level = (int) Math.min(used * 100 / limit / 10 * 10, 100);
    if (level > c.level) {
      int first = c.level + 10;
      c.level = level;
      id = begin(subject, "context_warning", c.model, Integer.toString(level), false);
      number("threshold_percent", level);
      json.writeArrayFieldStart("thresholds_crossed");
      for (int threshold = first; threshold <= level; threshold += 10) {
        json.writeNumber(threshold);
      }
      json.writeEndArray();
      percent("context_used_percent", percent);
      percent("context_remaining_percent", Math.floorDiv((limit - used) * 10_000, limit) / 100.0);
      number("used_tokens", used);
      number("input_tokens", c.input);
      number("cache_tokens", c.creation + c.read);
      number("context_window", limit);
      text("window_source", from);
      end(WARNING, id, "context_warning", subject);
    }
  }

  private void user() throws IOException {
    String text = message.firstText == null ? "" : message.firstText;
    if (text.startsWith("/compact") || text.startsWith("<command-name>/compact")) {
      if (subject.equals("main")) {
        session.hint = "manual";
      }
    } else if (text.startsWith("<command-name>/clear")) {
      reset("clear");
    }
    if (message.isSynthetic) {
      boolean fits = chain.awaitedId != null
          && (chain.awaitedAnchor == null || chain.awaitedAnchor.equals(message.uuid));
      if (fits && message.wholeText != null) {
        String id = begin(subject, "compaction_summary", chain.model, null, false);
        text("boundary_id", chain.awaitedId);
        text("summary", message.wholeText);
        end(SUMMARY, id, "compaction_summary", subject);
        chain.awaitedId = chain.awaitedAnchor = null;
      }
    } else if (!text.startsWith("<command-")) {
      count(chain);
    }
  }

  private void result() throws IOException {
    move(Event.RESULT, null);
    session.hint = null;
    if (message.windows != null) {
      for (Message.Window reported : message.windows) {
        String base = baseName(reported.name());
        Long known = session.windows.get(base);
        if (known == null || known != reported.tokens()) {
          session.windows.put(base, reported.tokens());
          touched = true;
        }
      }
    }
    String reason = message.terminal;
    if ("prompt_too_long".equals(reason) || "blocking_limit".equals(reason)
        || "rapid_refill_breaker".equals(reason)) {
      String id = begin("main", "context_exhausted", main.model, null, false);
      text("reason", reason);
      json.writeNullField("tokens_over");
      end(EXHAUSTED, id, "context_exhausted", "main");
    }
  }

  private void control() {
    Session s = session;
    s.enabled = message.compactEnabled == -1 ? s.enabled : message.compactEnabled;
    s.threshold = message.compactThreshold == NONE ? s.threshold : message.compactThreshold;
    s.effective = message.rawMax;
    s.raw.put(baseName(message.answerModel), message.rawMax);
    long digest = hash(message.total + message.rows.toString());
    touched = answered = true;
    if (s.usage != digest && main.reported) {
      s.usage = digest;
      isNews = true;
    }
  }

  private void tellLimits() throws IOException {
    List<String> names = new ArrayList<>(session.chains.keySet());
    names.remove("main");
    names.sort(null);
    tellLimits("main");
    for (String name : names) {
      tellLimits(name);
    }
  }

  private void tellLimits(String name) throws IOException {
    Session.Chain c = session.chains.get(name);
    if (c.model == null && !c.reported && !name.equals(firstRead)) {
      return;
    }
    findWindow(c.model);
    boolean isMain = name.equals("main");
    boolean due;
    if (isMain) {
      due = isNews || !c.reported || c.reportedWindow != window || !source.equals(c.reportedSource)
          || c.toldEnabled != session.enabled || c.toldThreshold != session.threshold
          || c.toldEffective != session.effective;
      c.toldEnabled = session.enabled;
      c.toldThreshold = session.threshold;
      c.toldEffective = session.effective;
    } else {
      due = c.reported && c.reportedWindow != window;
    }
    c.reported = true;
    c.reportedWindow = window;
    c.reportedSource = source;
    if (!due) {
      return;
    }
    String id = begin(name, "context_limits", c.model, null, false);
    number("window", c.reportedWindow);
    text("window_source", c.reportedSource);
    if (c.toldEnabled < 0) {
      json.writeNullField("auto_compact_enabled");
    } else {
      json.writeBooleanField("auto_compact_enabled", c.toldEnabled == 1);
    }
    number("auto_compact_threshold", c.toldThreshold);
    number("effective_window", c.toldEffective);
    json.writeNullField("auto_compact_source");
    if (isMain && answered) {
      number("total_tokens", message.total);
      json.writeArrayFieldStart("categories");
      for (Message.Row row : message.rows) {
        json.writeStartObject();
        text("id", row.id());
        text("name", row.name());
        text("kind", row.kind());
        number("tokens", row.tokens());
        json.writeEndObject();
      }
      json.writeEndArray();
    } else {
      json.writeNullField("total_tokens");
      json.writeNullField("categories");
    }
    json.writeNullField("message_breakdown");
    end(LIMITS, id, "context_limits", name);
  }

  private void bound() throws IOException {
    Session.Chain c = chain;
    Begin start = move(Event.BOUNDARY, null);
    session.hint = null;
    complete(NONE);
    long before = message.preTokens != NONE ? message.preTokens : c.used;
    String beforeSource = message.preTokens != NONE ? "reported" : "last_reading";
    long duration = message.durationMs != NONE ? message.durationMs : passed(start);
    String durationSource = message.durationMs != NONE ? "reported" : "paired";
    c.number++;
    String id = begin(subject, "compact_boundary", c.model, null, false);
    text("attempt_id", start == null ? null : start.id());
    text("trigger", message.trigger);
    number("pre_tokens", before);
    text("pre_tokens_source", before == NONE ? null : beforeSource);
    number("post_tokens", message.postTokens);
    number("duration_ms", duration);
    text("duration_source", duration == NONE ? null : durationSource);
    number("number", c.number);
    number("messages_since_last", c.since);
    number("messages_total", c.total);
    json.writeFieldName("metadata");
    json.writeRawValue(new String(message.metadata, StandardCharsets.UTF_8));
    end(BOUNDARY, id, "compact_boundary", subject);
    c.used = NONE;
    c.percent = Double.NaN;
    c.messages = c.since = c.level = 0;
    c.awaitedId = c.pendingId = id;
    c.awaitedAnchor = message.anchor;
    c.pendingTrigger = message.trigger;
    c.pendingBefore = before;
    c.pendingDuration = duration;
  }

  private void reset(String reason) throws IOException {
    Session.Chain c = chain;
    session.reset = subject;
    if (subject.equals(wasReset)) {
      return;
    }
    if (subject.equals("main")) {
      move(Event.RESET, null);
      session.hint = null;
    }
    String id = begin(subject, "context_reset", c.model, null, false);
    text("reason", reason);
    end(RESET, id, "context_reset", subject);
    complete(NONE);
    c.used = NONE;
    c.percent = Double.NaN;
    c.pendingId = null;
    c.messages = c.level = 0;
  }

  private void complete(long after) throws IOException {
    Session.Chain c = chain;
    if (c.pendingId == null) {
      return;
    }
    String id = begin(subject, "compaction_complete", c.model, '"' + c.pendingId + '"', false);
    text("boundary_id", c.pendingId);
    text("trigger", c.pendingTrigger);
    number("tokens_before", c.pendingBefore);
    number("tokens_after", after);
    boolean measured = c.pendingBefore != NONE && after != NONE;
    number("tokens_saved", measured ? c.pendingBefore - after : NONE);
    number("duration_ms", c.pendingDuration);
    if (after != NONE) {
      number("cache_rewrite_tokens", c.creation);
    }
    end(after == NONE ? FORCED : COMPLETE, id, "compaction_complete", subject);
  }

  private Begin move(Event event, String error) throws IOException {
    Session s = session;
    int phase = s.phase;
    Begin before = s.startId == null ? null : new Begin(s.startId, s.startOwn, s.startLive);
    boolean active = phase != Session.IDLE;
    switch (event) {
      case COMPACTING -> {
        if (phase == Session.OPEN) {
          heartbeat(before);
        } else {
          if (active) {
            fail(before, false, null);
          }
          start();
        }
        s.phase = Session.OPEN;
        return before;
      }
      case SUCCESS -> {
        if (active) {
          s.phase = Session.SUCCEEDED;
        }
        return before;
      }
      case CLEARED -> {
        if (phase == Session.OPEN) {
          s.phase = Session.ENDED;
        }
        return before;
      }
      case FAILED -> fail(before, true, error);
      case RESULT, RESPONSE -> {
        if (phase == Session.SUCCEEDED || !active) {
          return before;
        }
        fail(before, false, null);
      }
      case RESET, GAP -> {
        if (active) {
          fail(before, false, null);
        }
      }
      default -> { }
    }
    s.phase = Session.IDLE;
    s.startId = null;
    return before;
  }

  private void start() throws IOException {
    Session s = session;
    String reason = null;
    if (s.hint != null) {
      reason = s.hint.equals("manual") ? "manual" : "threshold_exceeded";
      s.hint = null;
    }
    String id = begin("main", "compaction_start", main.model, null, true);
    text("trigger_reason", reason);
    percent("context_used_percent", main.percent);
    number("used_tokens", main.used);
    end(START, id, "compaction_start", "main");
    s.startId = id;
    s.startOwn = ownMs;
    s.startLive = receivedMs;
  }

  private void heartbeat(Begin start) throws IOException {
    String id = begin("main", "compaction_progress", main.model, null, false);
    text("attempt_id", start.id());
    number("elapsed_ms", passed(start));
    end(PROGRESS, id, "compaction_progress", "main");
  }

  private void fail(Begin start, boolean reported, String error) throws IOException {
    String attempt = start == null ? null : start.id();
    String extra = attempt == null ? "null" : '"' + attempt + '"';
    String words = error == null ? "" : error.toLowerCase();
    boolean blocked = reported && words.contains("hook") && words.contains("block");
    String id = begin("main", "compaction_failed", main.model, extra, false);
    text("attempt_id", attempt);
    text("outcome", blocked ? "blocked" : reported ? "failed" : "unknown");
    text("error", error);
    number("duration_ms", passed(start));
    end(FAILED, id, "compaction_failed", "main");
  }

  private long passed(Begin start) {
    if (start == null) {
      return NONE;
    }
    boolean own = start.own() != NONE && ownMs != NONE;
    long passed = own ? ownMs - start.own() : receivedMs - start.live();
    return passed > 0 ? passed : NONE;
  }

  // Writing.

  private String begin(String name, String kind, String model, String extra, boolean attempt)
      throws IOException {
    String id = recordId(name, kind, extra);
    bytes.reset();
    json = JSON.createGenerator(bytes);
    json.writeStartObject();
    text("session_id", sessionId);
    text("chain", name);
    text("model", model);
    json.writeNullField("task_id");
    text("subagent_type", session.chains.get(name).kind);
    if (attempt) {
      text("attempt_id", id);
    }
    return id;
  }

  private void end(int rank, String id, String kind, String name) throws IOException {
    json.writeEndObject();
    json.close();
    records.add(new Out(rank, id, kind, name, bytes.toByteArray()));
  }

  private void text(String name, String value) throws IOException {
    if (value == null) {
      json.writeNullField(name);
    } else {
      json.writeStringField(name, value);
    }
  }

  private void number(String name, long value) throws IOException {
    if (value == NONE) {
      json.writeNullField(name);
    } else {
      json.writeNumberField(name, value);
    }
  }

  private void percent(String name, double value) throws IOException {
    if (Double.isNaN(value)) {
      json.writeNullField(name);
    } else {
      json.writeNumberField(name, value);
    }
  }

  private String recordId(String name, String kind, String extra) {
    StringBuilder made = new StringBuilder(200);
    made.append('[');
    quoted(made, sessionId).append(',');
    quoted(made, name).append(',');
    quoted(made, kind).append(',');
    quoted(made, cause);
    if (extra != null) {
      made.append(',').append(extra);
    }
    made.append(']');
    sha1.update(namespace);
    byte[] hash = sha1.digest(made.toString().getBytes(StandardCharsets.UTF_8));
    hash[6] = (byte) (hash[6] & 0x0f | 0x50);
    hash[8] = (byte) (hash[8] & 0x3f | 0x80);
    char[] text = new char[36];
    int at = 0;
    for (int index = 0; index < 16; index++) {
      if (index == 4 || index == 6 || index == 8 || index == 10) {
        text[at++] = '-';
      }
      text[at++] = HEX[hash[index] >> 4 & 15];
      text[at++] = HEX[hash[index] & 15];
    }
    return new String(text);
  }

  private static StringBuilder quoted(StringBuilder to, String value) {
    return to.append('"').append(JsonStringEncoder.getInstance().quoteAsString(value)).append('"');
  }

  // Names, times and hashes.

  private static String baseName(String model) {
    return model.endsWith("]") ? model.substring(0, model.lastIndexOf('[')) : model;
  }

  private static long suffixOf(String model) {
    if (!model.endsWith("]")) {
      return NONE;
    }
    int unit = model.length() - 2;
    long count = Long.parseLong(model.substring(model.lastIndexOf('[') + 1, unit));
    return count * (Character.toLowerCase(model.charAt(unit)) == 'm' ? 1_000_000 : 1_000);
  }

  private static boolean same(String one, String other) {
    return one == null ? other == null : one.equals(other);
  }

  private static long milliseconds(String text) {
    LocalDate day = LocalDate.of(digits(text, 0, 4), digits(text, 5, 7), digits(text, 8, 10));
    long seconds = day.toEpochDay() * 86_400 + digits(text, 11, 13) * 3_600L
        + digits(text, 14, 16) * 60L + digits(text, 17, 19);
    return seconds * 1_000 + digits(text, 20, 23);
  }

  private static int digits(String text, int from, int to) {
    int value = 0;
    for (int at = from; at < to; at++) {
      value = value * 10 + text.charAt(at) - '0';
    }
    return value;
  }

  private static String rfc3339(long ms) {
    LocalDateTime at = LocalDateTime.ofEpochSecond(ms / 1000, 0, ZoneOffset.UTC);
    StringBuilder text = new StringBuilder(24);
    padded(text, at.getYear(), 4).append('-');
    padded(text, at.getMonthValue(), 2).append('-');
    padded(text, at.getDayOfMonth(), 2).append('T');
    padded(text, at.getHour(), 2).append(':');
    padded(text, at.getMinute(), 2).append(':');
    padded(text, at.getSecond(), 2).append('.');
    return padded(text, (int) (ms % 1000), 3).append('Z').toString();
  }

  private static StringBuilder padded(StringBuilder to, int value, int width) {
    for (int least = (int) Math.pow(10, width - 1); least > value && least > 1; least /= 10) {
      to.append('0');
    }
    return to.append(value);
  }

  private static long hash(String text) {
    long hash = 0xcbf29ce484222325L;
    for (int at = 0; at < text.length(); at++) {
      hash = (hash ^ text.charAt(at)) * 0x100000001b3L;
    }
    return hash;
  }

  private static String hex(byte[] hash) {
    char[] text = new char[hash.length * 2];
    for (int at = 0; at < hash.length; at++) {
      text[2 * at] = HEX[hash[at] >> 4 & 15];
      text[2 * at + 1] = HEX[hash[at] & 15];
    }
    return new String(text);
  }

  private static byte[] uuidBytes(String text) {
    return java.util.HexFormat.of().parseHex(text.replace("-", ""));
  }

  private static MessageDigest digest(String name) {
    try {
      return MessageDigest.getInstance(name);
    } catch (NoSuchAlgorithmException missing) {
      throw new IllegalStateException(missing);
    }
  }
}
