// Exports three log records, as Claude Code does, and a span: `node export.cjs URL http|proto`.
const { diag, DiagConsoleLogger, DiagLogLevel } = require("@opentelemetry/api");
const { resourceFromAttributes } = require("@opentelemetry/resources");
const { LoggerProvider, BatchLogRecordProcessor } = require("@opentelemetry/sdk-logs");
const { BasicTracerProvider, BatchSpanProcessor } = require("@opentelemetry/sdk-trace-base");

const [url, form] = process.argv.slice(2);
const { OTLPLogExporter } = require(`@opentelemetry/exporter-logs-otlp-${form}`);
const { OTLPTraceExporter } = require(`@opentelemetry/exporter-trace-otlp-${form}`);

diag.setLogger(new DiagConsoleLogger(), DiagLogLevel.WARN);

async function main() {
  const logs = new OTLPLogExporter({ url: `${url}/v1/logs`, compression: "gzip" });
  const logging = new LoggerProvider({
    resource: resourceFromAttributes({ "service.name": "claude-code", "service.version": "1.2.3" }),
    processors: [new BatchLogRecordProcessor({ exporter: logs })],
  });
  for (let number = 1; number <= 3; number += 1) {
    logging.getLogger("com.anthropic.claude_code.events").emit({
      timestamp: new Date(1781000000000 + number),
      body: "claude_code.api_request",
      attributes: {
        "event.name": "api_request",
        "session.id": "exported",
        query_source: "repl_main_thread",
        model: "claude-sonnet-4-5",
        input_tokens: 1000 * number,
      },
    });
  }
  await logging.forceFlush();
  await logging.shutdown();

  const spans = new OTLPTraceExporter({ url: `${url}/v1/traces` });
  const tracing = new BasicTracerProvider({
    resource: resourceFromAttributes({ "service.name": "my-agent" }),
    spanProcessors: [new BatchSpanProcessor(spans)],
  });
  tracing.getTracer("agent").startSpan("chat my-model", {
    attributes: {
      "gen_ai.operation.name": "chat",
      "gen_ai.conversation.id": "spanned",
      "gen_ai.usage.input_tokens": 4000,
    },
  }).end();
  await tracing.forceFlush();
  await tracing.shutdown();
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
