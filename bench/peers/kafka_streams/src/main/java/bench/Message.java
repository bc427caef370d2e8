package bench;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** What the rules ask of one message, read in one pass; the rest is skipped unread. */
final class Message {
  private static final JsonFactory JSON = new JsonFactory();
  static final long NONE = Session.NONE;

  /** One row of a context answer. */
  record Row(String id, String name, String kind, long tokens) {}

  /** One entry of `modelUsage`. */
  record Window(String name, long tokens) {}

  byte[] value;
  String type;
  String subtype;
  String uuid;
  String sessionId;
  String timestamp;
  String parentId;
  String agentId;
  String subagentType;
  boolean isReplay;
  boolean isSynthetic;
  // message, or event.message
  String messageId;
  String model;
  long input;
  long creation;
  long read;
  String firstText;
  String wholeText;
  String edits;
  long cleared;
  // event
  String eventType;
  long output;
  long creationOneHour;
  // status, hooks, init
  boolean hasStatus;
  String status;
  String result;
  String error;
  String hookEvent;
  String hookName;
  String version;
  String cwd;
  String topModel;
  // result
  List<Window> windows;
  String terminal;
  // boundary
  byte[] metadata;
  String trigger;
  long preTokens;
  long postTokens;
  long durationMs;
  String anchor;
  // reset
  String topTrigger;
  // control response
  boolean hasAnswer;
  String answerModel;
  long rawMax;
  long total;
  long compactThreshold;
  int compactEnabled;
  List<Row> rows;

  private JsonParser parser;

  static Message parse(byte[] value) throws IOException {
    Message message = new Message();
    message.value = value;
    message.input = message.creation = message.read = message.output = NONE;
    message.creationOneHour = NONE;
    message.preTokens = message.postTokens = message.durationMs = NONE;
    message.rawMax = message.total = message.compactThreshold = NONE;
    message.compactEnabled = -1;
    message.cleared = NONE;
    try (JsonParser parser = JSON.createParser(value)) {
      message.parser = parser;
      parser.nextToken();
      message.top();
    }
    return message;
  }

  private void top() throws IOException {
    String name;
    while ((name = parser.nextFieldName()) != null) {
      JsonToken token = parser.nextToken();
      switch (name) {
        case "type" -> type = text(token);
        case "subtype" -> subtype = text(token);
        case "uuid" -> uuid = text(token);
        case "session_id" -> sessionId = text(token);
        case "timestamp" -> timestamp = text(token);
        case "parent_tool_use_id" -> parentId = text(token);
        case "agent_id" -> agentId = text(token);
        case "subagent_type" -> subagentType = text(token);
        case "isReplay" -> isReplay = token == JsonToken.VALUE_TRUE;
        case "isSynthetic" -> isSynthetic = token == JsonToken.VALUE_TRUE;
        case "status" -> {
          hasStatus = true;
          status = text(token);
        }
        case "compact_result" -> result = text(token);
        case "compact_error" -> error = text(token);
        case "hook_event" -> hookEvent = text(token);
        case "hook_name" -> hookName = text(token);
        case "claude_code_version" -> version = text(token);
        case "cwd" -> cwd = text(token);
        case "model" -> topModel = text(token);
        case "terminal_reason" -> terminal = text(token);
        case "trigger" -> topTrigger = text(token);
        case "message" -> message(token);
        case "event" -> event(token);
        case "modelUsage" -> modelUsage(token);
        case "compact_metadata" -> metadata(token);
        case "response" -> response(token);
        default -> parser.skipChildren();
      }
    }
  }

  private void message(JsonToken token) throws IOException {
    if (token != JsonToken.START_OBJECT) {
      parser.skipChildren();
      return;
    }
    String name;
    while ((name = parser.nextFieldName()) != null) {
      JsonToken inner = parser.nextToken();
      switch (name) {
        case "id" -> messageId = text(inner);
        case "model" -> model = text(inner);
        case "usage" -> usage(inner);
        case "context_management" -> management(inner);
        case "content" -> content(inner);
        default -> parser.skipChildren();
      }
    }
  }

  private void content(JsonToken token) throws IOException {
    // An assistant's content says nothing; `type` is the first field of the workload's frames.
    if (!"user".equals(type)) {
      parser.skipChildren();
      return;
    }
    if (token == JsonToken.VALUE_STRING) {
      firstText = wholeText = parser.getText();
      return;
    }
    if (token != JsonToken.START_ARRAY) {
      parser.skipChildren();
      return;
    }
    boolean first = true;
    StringBuilder joined = null;
    while (parser.nextToken() == JsonToken.START_OBJECT) {
      String name;
      String found = null;
      while ((name = parser.nextFieldName()) != null) {
        JsonToken inner = parser.nextToken();
        if (name.equals("text")) {
          found = text(inner);
        } else {
          parser.skipChildren();
        }
      }
      if (first) {
        firstText = found;
      }
      first = false;
      if (found != null) {
        joined = joined == null ? new StringBuilder() : joined.append("\n\n");
        joined.append(found);
      }
    }
    wholeText = joined == null ? null : joined.toString();
  }

  private void usage(JsonToken token) throws IOException {
    if (token != JsonToken.START_OBJECT) {
      parser.skipChildren();
      return;
    }
    boolean iterated = false;
    long in = NONE;
    long made = NONE;
    long cached = NONE;
    long oneHour = NONE;
    String name;
    while ((name = parser.nextFieldName()) != null) {
      JsonToken inner = parser.nextToken();
      switch (name) {
        case "input_tokens" -> in = number(inner);
        case "cache_creation_input_tokens" -> made = number(inner);
        case "cache_read_input_tokens" -> cached = number(inner);
        case "output_tokens" -> output = number(inner);
        case "cache_creation" -> oneHour = creationByAge(inner);
        case "iterations" -> iterated = iterations(inner);
        default -> parser.skipChildren();
      }
    }
    if (!iterated) {
      input = in;
      creation = made;
      read = cached;
      creationOneHour = oneHour;
    }
  }

  private long creationByAge(JsonToken token) throws IOException {
    long oneHour = NONE;
    if (token != JsonToken.START_OBJECT) {
      parser.skipChildren();
      return oneHour;
    }
    String name;
    while ((name = parser.nextFieldName()) != null) {
      JsonToken inner = parser.nextToken();
      if ("ephemeral_1h_input_tokens".equals(name)) {
        oneHour = number(inner);
      } else {
        parser.skipChildren();
      }
    }
    return oneHour;
  }

  private boolean iterations(JsonToken token) throws IOException {
    if (token != JsonToken.START_ARRAY) {
      parser.skipChildren();
      return false;
    }
    boolean found = false;
    while (parser.nextToken() == JsonToken.START_OBJECT) {
      long in = NONE;
      long made = NONE;
      long cached = NONE;
      long oneHour = NONE;
      boolean counts = false;
      String name;
      while ((name = parser.nextFieldName()) != null) {
        JsonToken inner = parser.nextToken();
        switch (name) {
          case "type" -> {
            String kind = text(inner);
            counts = "message".equals(kind) || "fallback_message".equals(kind);
          }
          case "input_tokens" -> in = number(inner);
          case "cache_creation_input_tokens" -> made = number(inner);
          case "cache_read_input_tokens" -> cached = number(inner);
          case "cache_creation" -> oneHour = creationByAge(inner);
          default -> parser.skipChildren();
        }
      }
      if (counts) {
        found = true;
        input = in;
        creation = made;
        read = cached;
        creationOneHour = oneHour;
      }
    }
    return found;
  }

  private void management(JsonToken token) throws IOException {
    if (token != JsonToken.START_OBJECT) {
      parser.skipChildren();
      return;
    }
    String name;
    while ((name = parser.nextFieldName()) != null) {
      JsonToken inner = parser.nextToken();
      if (!name.equals("applied_edits") || inner != JsonToken.START_ARRAY) {
        parser.skipChildren();
        continue;
      }
      int begin = (int) parser.currentTokenLocation().getByteOffset();
      boolean any = false;
      while (parser.nextToken() == JsonToken.START_OBJECT) {
        any = true;
        String field;
        while ((field = parser.nextFieldName()) != null) {
          JsonToken last = parser.nextToken();
          if (field.equals("cleared_input_tokens")) {
            cleared = (cleared == NONE ? 0 : cleared) + number(last);
          } else {
            parser.skipChildren();
          }
        }
      }
      if (any) {
        int end = (int) parser.currentLocation().getByteOffset();
        edits = new String(value, begin, end - begin, StandardCharsets.UTF_8);
      }
    }
  }

  private void event(JsonToken token) throws IOException {
    if (token != JsonToken.START_OBJECT) {
      parser.skipChildren();
      return;
    }
    String name;
    while ((name = parser.nextFieldName()) != null) {
      JsonToken inner = parser.nextToken();
      switch (name) {
        case "type" -> eventType = text(inner);
        case "message" -> message(inner);
        case "usage" -> usage(inner);
        default -> parser.skipChildren();
      }
    }
  }

  private void modelUsage(JsonToken token) throws IOException {
    windows = new ArrayList<>(2);
    String name;
    while (token == JsonToken.START_OBJECT && (name = parser.nextFieldName()) != null) {
      parser.nextToken();
      String field;
      long window = NONE;
      while ((field = parser.nextFieldName()) != null) {
        JsonToken inner = parser.nextToken();
        if (field.equals("contextWindow")) {
          window = number(inner);
        } else {
          parser.skipChildren();
        }
      }
      windows.add(new Window(name, window));
    }
  }

  private void metadata(JsonToken token) throws IOException {
    if (token != JsonToken.START_OBJECT) {
      parser.skipChildren();
      return;
    }
    int begin = (int) parser.currentTokenLocation().getByteOffset();
    String name;
    while ((name = parser.nextFieldName()) != null) {
      JsonToken inner = parser.nextToken();
      switch (name) {
        case "trigger" -> trigger = text(inner);
        case "pre_tokens" -> preTokens = number(inner);
        case "post_tokens" -> postTokens = number(inner);
        case "duration_ms" -> durationMs = number(inner);
        case "preserved_messages", "preserved_segment" -> anchor(inner);
        default -> parser.skipChildren();
      }
    }
    int end = (int) parser.currentLocation().getByteOffset();
    metadata = java.util.Arrays.copyOfRange(value, begin, end);
  }

  private void anchor(JsonToken token) throws IOException {
    String name;
    while (token == JsonToken.START_OBJECT && (name = parser.nextFieldName()) != null) {
      JsonToken inner = parser.nextToken();
      if (name.equals("anchor_uuid") && anchor == null) {
        anchor = text(inner);
      } else {
        parser.skipChildren();
      }
    }
  }

  private void response(JsonToken token) throws IOException {
    String name;
    while (token == JsonToken.START_OBJECT && (name = parser.nextFieldName()) != null) {
      JsonToken inner = parser.nextToken();
      if (name.equals("response") && inner == JsonToken.START_OBJECT) {
        answer();
      } else {
        parser.skipChildren();
      }
    }
  }

  private void answer() throws IOException {
    hasAnswer = true;
    String name;
    while ((name = parser.nextFieldName()) != null) {
      JsonToken inner = parser.nextToken();
      switch (name) {
        case "model" -> answerModel = text(inner);
        case "rawMaxTokens" -> rawMax = number(inner);
        case "totalTokens" -> total = number(inner);
        case "autoCompactThreshold" -> compactThreshold = number(inner);
        case "isAutoCompactEnabled" -> compactEnabled = inner == JsonToken.VALUE_TRUE ? 1 : 0;
        case "categories" -> rows(inner);
        default -> parser.skipChildren();
      }
    }
  }

  private void rows(JsonToken token) throws IOException {
    rows = new ArrayList<>();
    while (token == JsonToken.START_ARRAY && parser.nextToken() == JsonToken.START_OBJECT) {
      String id = null;
      String label = null;
      String kind = null;
      long tokens = NONE;
      String name;
      while ((name = parser.nextFieldName()) != null) {
        JsonToken inner = parser.nextToken();
        switch (name) {
          case "id" -> id = text(inner);
          case "name" -> label = text(inner);
          case "kind" -> kind = text(inner);
          case "tokens" -> tokens = number(inner);
          default -> parser.skipChildren();
        }
      }
      rows.add(new Row(id, label, kind, tokens));
    }
  }

  private String text(JsonToken token) throws IOException {
    if (token == JsonToken.VALUE_STRING) {
      return parser.getText();
    }
    parser.skipChildren();
    return null;
  }

  private long number(JsonToken token) throws IOException {
    if (token == JsonToken.VALUE_NUMBER_INT) {
      return parser.getLongValue();
    }
    parser.skipChildren();
    return NONE;
  }

  /** Whether it can change any record. */
  boolean relevant() {
    if (type == null) {
      return false;
    }
    return switch (type) {
      case "assistant", "result", "conversation_reset" -> true;
      case "control_response" -> hasAnswer;
      case "stream_event" -> "message_start".equals(eventType) || "message_delta".equals(eventType);
      case "user" -> {
        String text = firstText == null ? "" : firstText;
        if (isReplay || text.startsWith("<command-") || text.startsWith("<local-command-")) {
          yield text.startsWith("<command-name>/c");
        }
        yield true;
      }
      case "system" -> system();
      default -> false;
    };
  }

  private boolean system() {
    if (subtype == null) {
      return false;
    }
    return switch (subtype) {
      case "init", "compact_boundary" -> true;
      case "status" -> hasStatus && (status == null || status.equals("compacting"));
      case "hook_started", "hook_response" -> "PreCompact".equals(hookEvent);
      default -> false;
    };
  }
}
