package bench;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** The same derivation on Kafka Streams: BOOTSTRAP IN OUT APPLICATION RULES STATE_FOLDER. */
public final class Main {
  private static final String STORE = "sessions";
  private static final byte[] SPEC = bytes("1.0");
  private static final byte[] JSON = bytes("application/json");

  private Main() {}

  private static final class Derive implements Processor<byte[], byte[], byte[], byte[]> {
    private final Deriver deriver = new Deriver();
    private final byte[] rules;
    private ProcessorContext<byte[], byte[]> context;
    private KeyValueStore<byte[], Session> sessions;

    Derive(byte[] rules) {
      this.rules = rules;
    }

    @Override
    public void init(ProcessorContext<byte[], byte[]> given) {
      context = given;
      sessions = given.getStateStore(STORE);
    }

    @Override
    public void process(Record<byte[], byte[]> record) {
      byte[] key = record.key();
      try {
        Message message = Message.parse(record.value());
        if (!message.relevant()) {
          return;
        }
        Session stored = sessions.get(key);
        String id = new String(key, StandardCharsets.UTF_8);
        Session after = deriver.derive(stored, message, id, record.timestamp());
        if (after == null) {
          return;
        }
        sessions.put(key, after);
        List<Deriver.Out> records = deriver.records;
        if (!records.isEmpty()) {
          forward(record, records, after.sequence - records.size(), id);
        }
      } catch (java.io.IOException broken) {
        throw new java.io.UncheckedIOException(broken);
      }
    }

    private void forward(
        Record<byte[], byte[]> of, List<Deriver.Out> records, long sequence, String id) {
      RecordMetadata from = context.recordMetadata().orElseThrow();
      byte[] source = bytes("/sessions/" + id);
      byte[] topic = bytes(from.topic());
      byte[] partition = bytes(Integer.toString(from.partition()));
      byte[] offset = bytes(Long.toString(from.offset()));
      byte[] timestamp = bytes(Long.toString(of.timestamp()));
      byte[] time = bytes(deriver.time);
      for (Deriver.Out out : records) {
        Headers headers = new RecordHeaders();
        headers.add("ce_specversion", SPEC);
        headers.add("ce_id", bytes(out.id()));
        headers.add("ce_source", source);
        headers.add("ce_type", bytes("contextgauge." + out.kind() + ".v1"));
        headers.add("ce_subject", bytes(out.subject()));
        headers.add("ce_sequence", bytes(Long.toString(++sequence)));
        headers.add("ce_rules", rules);
        headers.add("content-type", JSON);
        headers.add("ce_time", time);
        headers.add("src_topic", topic);
        headers.add("src_partition", partition);
        headers.add("src_offset", offset);
        headers.add("src_timestamp", timestamp);
        context.forward(new Record<>(of.key(), out.data(), of.timestamp(), headers));
      }
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  public static void main(String[] arguments) throws InterruptedException {
    Properties settings = new Properties();
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments[3]);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[5]);
    settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, Integer.getInteger("bench.threads", 1));
    settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 256L << 20);
    settings.put(
        StreamsConfig.COMMIT_INTERVAL_MS_CONFIG,
        Long.parseLong(System.getenv().getOrDefault("BENCH_STREAMS_COMMIT_MS", "100")));
    settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
    settings.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, 4_000);
    boolean persistent = "rocksdb".equals(System.getenv("BENCH_STREAMS_STORE"));
    KeyValueBytesStoreSupplier store =
        persistent ? Stores.persistentKeyValueStore(STORE) : Stores.inMemoryKeyValueStore(STORE);
    StreamsBuilder builder = new StreamsBuilder();
    builder.addStateStore(
        Stores.keyValueStoreBuilder(store, Serdes.ByteArray(), Session.serde())
            .withCachingEnabled());
    byte[] rules = bytes(arguments[4]);
    builder
        .stream(arguments[1], Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
        .process(() -> new Derive(rules), STORE)
        .to(arguments[2], Produced.with(Serdes.ByteArray(), Serdes.ByteArray()));
    KafkaStreams streams = new KafkaStreams(builder.build(), settings);
    CountDownLatch stopped = new CountDownLatch(1);
    streams.setUncaughtExceptionHandler(
        broken -> {
          broken.printStackTrace();
          Runtime.getRuntime().halt(1);
          return null;
        });
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  streams.close(java.time.Duration.ofSeconds(10));
                  stopped.countDown();
                }));
    streams.start();
    stopped.await();
  }
}
