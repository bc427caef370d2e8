package bench;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;

/** A session's state, and how it is kept: packed, without names or text around it. */
final class Session {
  static final long NONE = Long.MIN_VALUE;
  static final int SEEN = 64;
  static final int IDLE = 0;
  static final int OPEN = 1;
  static final int SUCCEEDED = 2;
  static final int ENDED = 3;

  /** One conversation with a model. */
  static final class Chain {
    String model;
    String kind;
    String key;
    long input = NONE;
    long creation;
    long read;
    long before = NONE;
    boolean edited;
    long output = NONE;
    long used = NONE;
    double percent = Double.NaN;
    int messages;
    int since;
    int total;
    int level;
    int number;
    String awaitedId;
    String awaitedAnchor;
    String pendingId;
    String pendingTrigger;
    long pendingBefore = NONE;
    long pendingDuration = NONE;
    boolean reported;
    long reportedWindow = NONE;
    String reportedSource;
    int toldEnabled = -1;
    long toldThreshold = NONE;
    long toldEffective = NONE;
  }

  long sequence;
  long last = NONE;
  int phase = IDLE;
  String startId;
  long startOwn = NONE;
  long startLive = NONE;
  String hint;
  String reset;
  String version;
  String model;
  String cwd;
  boolean hasFacts;
  long suffix = NONE;
  int enabled = -1;
  long threshold = NONE;
  long effective = NONE;
  long usage = NONE;
  long[] seen = new long[0];
  Map<String, Long> windows = new LinkedHashMap<>();
  Map<String, Long> raw = new LinkedHashMap<>();
  Map<String, Long> suffixed = new LinkedHashMap<>();
  Map<String, String> aliases = new LinkedHashMap<>();
  List<String> exceeded = new ArrayList<>();
  Map<String, Chain> chains = new LinkedHashMap<>();

  Session() {
    chains.put("main", new Chain());
  }

  boolean knows(long cause) {
    for (int at = seen.length - 1; at >= 0; at--) {
      if (seen[at] == cause) {
        return true;
      }
    }
    return false;
  }

  void remember(long cause) {
    int kept = Math.min(seen.length, SEEN - 1);
    long[] after = new long[kept + 1];
    System.arraycopy(seen, seen.length - kept, after, 0, kept);
    after[kept] = cause;
    seen = after;
  }

  static Serde<Session> serde() {
    // One store builder serves all stream threads, and a packer has a buffer.
    ThreadLocal<Packer> packers = ThreadLocal.withInitial(Packer::new);
    Serializer<Session> write =
        (topic, session) -> session == null ? null : packers.get().pack(session);
    Deserializer<Session> read = (topic, bytes) -> bytes == null ? null : unpack(bytes);
    return Serdes.serdeFrom(write, read);
  }

  private static final class Packer {
    private ByteBuffer to = ByteBuffer.allocate(1 << 16);

    byte[] pack(Session session) {
      to.clear();
      while (true) {
        try {
          put(session);
          byte[] packed = new byte[to.position()];
          to.flip();
          to.get(packed);
          return packed;
        } catch (java.nio.BufferOverflowException tooSmall) {
          to = ByteBuffer.allocate(to.capacity() * 2);
        }
      }
    }

    private void put(Session s) {
      number(s.sequence);
      number(s.last);
      to.put((byte) s.phase);
      text(s.startId);
      number(s.startOwn);
      number(s.startLive);
      text(s.hint);
      text(s.reset);
      to.put((byte) (s.hasFacts ? 1 : 0));
      text(s.version);
      text(s.model);
      text(s.cwd);
      number(s.suffix);
      to.put((byte) s.enabled);
      number(s.threshold);
      number(s.effective);
      to.putLong(s.usage);
      to.put((byte) s.seen.length);
      for (long cause : s.seen) {
        to.putLong(cause);
      }
      numbers(s.windows);
      numbers(s.raw);
      numbers(s.suffixed);
      number(s.aliases.size());
      for (Map.Entry<String, String> entry : s.aliases.entrySet()) {
        text(entry.getKey());
        text(entry.getValue());
      }
      number(s.exceeded.size());
      for (String name : s.exceeded) {
        text(name);
      }
      number(s.chains.size());
      for (Map.Entry<String, Chain> entry : s.chains.entrySet()) {
        text(entry.getKey());
        chain(entry.getValue());
      }
    }

    private void chain(Chain c) {
      text(c.model);
      text(c.kind);
      text(c.key);
      number(c.input);
      number(c.creation);
      number(c.read);
      number(c.before);
      to.put((byte) (c.edited ? 1 : 0));
      number(c.output);
      number(c.used);
      to.putDouble(c.percent);
      number(c.messages);
      number(c.since);
      number(c.total);
      number(c.level);
      number(c.number);
      text(c.awaitedId);
      text(c.awaitedAnchor);
      text(c.pendingId);
      text(c.pendingTrigger);
      number(c.pendingBefore);
      number(c.pendingDuration);
      to.put((byte) (c.reported ? 1 : 0));
      number(c.reportedWindow);
      text(c.reportedSource);
      to.put((byte) c.toldEnabled);
      number(c.toldThreshold);
      number(c.toldEffective);
    }

    private void numbers(Map<String, Long> values) {
      number(values.size());
      for (Map.Entry<String, Long> entry : values.entrySet()) {
        text(entry.getKey());
        number(entry.getValue());
      }
    }

    /** A number in as many bytes as it takes; NONE takes one. */
    private void number(long value) {
      long rest = value == NONE ? 0 : value + 1;
      while ((rest & ~0x7FL) != 0) {
        to.put((byte) (rest & 0x7F | 0x80));
        rest >>>= 7;
      }
      to.put((byte) rest);
    }

    private void text(String value) {
      if (value == null) {
        to.put((byte) 0);
        return;
      }
      byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
      number(bytes.length);
      to.put(bytes);
    }
  }

  private static Session unpack(byte[] bytes) {
    ByteBuffer from = ByteBuffer.wrap(bytes);
    Session s = new Session();
    s.sequence = number(from);
    s.last = number(from);
    s.phase = from.get();
    s.startId = text(from);
    s.startOwn = number(from);
    s.startLive = number(from);
    s.hint = text(from);
    s.reset = text(from);
    s.hasFacts = from.get() == 1;
    s.version = text(from);
    s.model = text(from);
    s.cwd = text(from);
    s.suffix = number(from);
    s.enabled = from.get();
    s.threshold = number(from);
    s.effective = number(from);
    s.usage = from.getLong();
    s.seen = new long[from.get()];
    for (int at = 0; at < s.seen.length; at++) {
      s.seen[at] = from.getLong();
    }
    numbers(from, s.windows);
    numbers(from, s.raw);
    numbers(from, s.suffixed);
    for (long left = number(from); left > 0; left--) {
      s.aliases.put(text(from), text(from));
    }
    for (long left = number(from); left > 0; left--) {
      s.exceeded.add(text(from));
    }
    for (long left = number(from); left > 0; left--) {
      s.chains.put(text(from), chain(from));
    }
    return s;
  }

  private static Chain chain(ByteBuffer from) {
    Chain c = new Chain();
    c.model = text(from);
    c.kind = text(from);
    c.key = text(from);
    c.input = number(from);
    c.creation = number(from);
    c.read = number(from);
    c.before = number(from);
    c.edited = from.get() == 1;
    c.output = number(from);
    c.used = number(from);
    c.percent = from.getDouble();
    c.messages = (int) number(from);
    c.since = (int) number(from);
    c.total = (int) number(from);
    c.level = (int) number(from);
    c.number = (int) number(from);
    c.awaitedId = text(from);
    c.awaitedAnchor = text(from);
    c.pendingId = text(from);
    c.pendingTrigger = text(from);
    c.pendingBefore = number(from);
    c.pendingDuration = number(from);
    c.reported = from.get() == 1;
    c.reportedWindow = number(from);
    c.reportedSource = text(from);
    c.toldEnabled = from.get();
    c.toldThreshold = number(from);
    c.toldEffective = number(from);
    return c;
  }

  private static void numbers(ByteBuffer from, Map<String, Long> into) {
    for (long left = number(from); left > 0; left--) {
      into.put(text(from), number(from));
    }
  }

  private static long number(ByteBuffer from) {
    long value = 0;
    int shift = 0;
    byte part;
    do {
      part = from.get();
      value |= (part & 0x7FL) << shift;
      shift += 7;
    } while (part < 0);
    return value == 0 ? NONE : value - 1;
  }

  private static String text(ByteBuffer from) {
    long length = number(from);
    if (length == NONE) {
      return null;
    }
    int at = from.position();
    from.position(at + (int) length);
    return new String(from.array(), at, (int) length, StandardCharsets.UTF_8);
  }
}
