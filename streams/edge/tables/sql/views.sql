-- The views of analysis, over one table per kind of record. Names are those of docs/GLOSSARY.md.
-- What is inherited from another session is in no view but `inherited_readings`: it counts nowhere,
-- and neither does what a session copied of another one, as far as that shows (`copied_history`).
-- A late reading (R34) counts, but is not its chain's size: a newer one was known by then.

-- Readings that count nowhere: all of a response but its last one, and of a response that several
-- sessions have, as forks of which nothing reports the origin, all but that of the session that began
-- first. Where they began alike, that is guessed: the one with the oldest response of its own, or
-- without one, as a session that was left for its fork.
CREATE OR REPLACE VIEW repeated_readings AS
WITH own AS (
    SELECT DISTINCT
        id,
        session_id,
        chain,
        sequence,
        "time",
        used_tokens,
        model,
        coalesce(response_id, id) AS response
    FROM context_reading
    WHERE inherited IS NOT TRUE
),
reported_again AS (
    SELECT session_id, chain, response, max(sequence) AS last_sequence
    FROM own
    GROUP BY session_id, chain, response
    HAVING count(*) > 1
),
older AS (
    SELECT own.id
    FROM own
    JOIN reported_again AS again
        ON again.session_id = own.session_id
        AND again.chain = own.chain
        AND again.response = own.response
        AND again.last_sequence > own.sequence
),
responses AS (
    SELECT * FROM own WHERE NOT EXISTS (SELECT 1 FROM older WHERE older.id = own.id)
),
shared AS (
    SELECT response, "time", used_tokens, model
    FROM responses
    GROUP BY response, "time", used_tokens, model
    HAVING count(*) > 1
),
copies AS (
    SELECT responses.*
    FROM responses
    JOIN shared
        ON shared.response = responses.response
        AND shared."time" IS NOT DISTINCT FROM responses."time"
        AND shared.used_tokens = responses.used_tokens
        AND shared.model IS NOT DISTINCT FROM responses.model
),
sessions_with_copies AS (
    SELECT
        responses.session_id,
        min(responses."time") AS began,
        min(CASE WHEN copies.id IS NULL THEN responses."time" END) AS own_began
    FROM responses
    LEFT JOIN copies ON copies.id = responses.id
    WHERE responses.session_id IN (SELECT session_id FROM copies)
    GROUP BY responses.session_id
),
ranked AS (
    SELECT
        copies.id,
        row_number() OVER (
            PARTITION BY response, "time", used_tokens, model
            ORDER BY began NULLS LAST, own_began NULLS FIRST, copies.session_id, sequence
        ) AS place
    FROM copies
    JOIN sessions_with_copies AS sessions ON sessions.session_id = copies.session_id
)
SELECT id, false AS is_copy FROM older
UNION ALL
SELECT id, true FROM ranked WHERE place > 1;

-- One row per response: its last reading, in its origin. A record that was published again, as of a
-- session that the deriver had forgotten, has the same id.
CREATE OR REPLACE VIEW readings AS
WITH single AS (
    SELECT *
    FROM context_reading
    WHERE inherited IS NOT TRUE
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY sequence) = 1
),
own AS (
    SELECT
        *,
        coalesce(
            output_tokens,
            lead(previous_output_tokens) OVER (PARTITION BY session_id, chain ORDER BY sequence)
        ) AS known_output_tokens
    FROM single
)
SELECT
    id,
    session_id,
    chain,
    sequence,
    "time",
    CAST("time" AS DATE) AS day,
    model,
    subagent_type,
    used_tokens,
    input_tokens,
    cache_creation_tokens,
    cache_creation_1h_tokens,
    cache_read_tokens,
    known_output_tokens AS output_tokens,
    service_tier,
    response_id,
    "window" AS window_tokens,
    window_source,
    used_percent,
    window_source IN ('default', 'exceeded') AS is_window_assumed,
    messages,
    messages_total,
    late IS TRUE AS is_late
FROM own
WHERE NOT EXISTS (SELECT 1 FROM repeated_readings AS repeated WHERE repeated.id = own.id);

-- How far a chain is a copy of another session's, without anything that reports it: up to its last
-- response that is a copy, with what came of that message, and to a compaction after it and before its
-- own first response, which the session has too that it copied.
CREATE OR REPLACE VIEW copied_history AS
WITH copies AS (
    SELECT copy.session_id, copy.chain, copy.sequence, copy."time", coalesce(copy.response_id, copy.id) AS response
    FROM context_reading AS copy
    JOIN repeated_readings AS repeated ON repeated.id = copy.id AND repeated.is_copy
),
own AS (
    SELECT session_id, chain, min(sequence) AS first_sequence
    FROM readings
    GROUP BY session_id, chain
),
copied AS (
    SELECT
        copies.session_id,
        copies.chain,
        own.first_sequence,
        max(copies.sequence) AS last_sequence,
        max(copies."time") AS last_time
    FROM copies
    LEFT JOIN own ON own.session_id = copies.session_id AND own.chain = copies.chain
    WHERE own.first_sequence IS NULL OR copies.sequence < own.first_sequence
    GROUP BY copies.session_id, copies.chain, own.first_sequence
),
families AS (
    SELECT DISTINCT copies.session_id, other.session_id AS other_id
    FROM copies
    JOIN context_reading AS other
        ON coalesce(other.response_id, other.id) = copies.response
        AND other."time" IS NOT DISTINCT FROM copies."time"
        AND other.session_id <> copies.session_id
),
shared AS (
    SELECT boundary.session_id, boundary.chain, boundary.sequence
    FROM compact_boundary AS boundary
    JOIN families ON families.session_id = boundary.session_id
    JOIN compact_boundary AS other
        ON other.session_id = families.other_id
        AND other.chain = boundary.chain
        AND other."time" = boundary."time"
        AND other.pre_tokens IS NOT DISTINCT FROM boundary.pre_tokens
),
around AS (
    SELECT session_id, chain, sequence, "time" FROM context_warning
    UNION ALL
    SELECT session_id, chain, sequence, "time" FROM context_exhausted
    UNION ALL
    SELECT session_id, chain, sequence, "time" FROM tool_use
),
ends AS (
    SELECT copied.session_id, copied.chain, copied.last_sequence AS sequence
    FROM copied
    UNION ALL
    SELECT copied.session_id, copied.chain, shared.sequence
    FROM copied
    JOIN shared
        ON shared.session_id = copied.session_id
        AND shared.chain = copied.chain
        AND shared.sequence > copied.last_sequence
        AND (copied.first_sequence IS NULL OR shared.sequence < copied.first_sequence)
    UNION ALL
    SELECT copied.session_id, copied.chain, around.sequence
    FROM copied
    JOIN around
        ON around.session_id = copied.session_id
        AND around.chain = copied.chain
        AND around.sequence > copied.last_sequence
        AND around."time" <= copied.last_time
        AND (copied.first_sequence IS NULL OR around.sequence < copied.first_sequence)
)
SELECT session_id, chain, max(sequence) AS last_sequence
FROM ends
GROUP BY session_id, chain;

-- Records of copied histories, which count for the sessions that they were copied of.
CREATE OR REPLACE VIEW copied_records AS
WITH events AS (
    SELECT id, session_id, chain, sequence FROM compact_boundary
    UNION ALL
    SELECT id, session_id, chain, sequence FROM compaction_failed
    UNION ALL
    SELECT id, session_id, chain, sequence FROM compaction_start
    UNION ALL
    SELECT id, session_id, chain, sequence FROM context_exhausted
    UNION ALL
    SELECT id, session_id, chain, sequence FROM context_reset
    UNION ALL
    SELECT id, session_id, chain, sequence FROM context_warning
    UNION ALL
    SELECT id, session_id, chain, sequence FROM tool_use
    UNION ALL
    SELECT id, session_id, chain, sequence FROM user_turn
)
SELECT events.id
FROM events
JOIN copied_history AS copied
    ON copied.session_id = events.session_id
    AND copied.chain = events.chain
    AND copied.last_sequence >= events.sequence;

CREATE OR REPLACE VIEW inherited_readings AS
SELECT id, session_id, chain, sequence, "time", model, used_tokens
FROM context_reading
WHERE inherited IS TRUE;

CREATE OR REPLACE VIEW warnings AS
SELECT
    id,
    session_id,
    chain,
    sequence,
    "time",
    model,
    threshold_percent,
    thresholds_crossed,
    context_used_percent AS used_percent,
    used_tokens,
    context_window AS window_tokens,
    window_source
FROM context_warning AS warning
WHERE inherited IS NOT TRUE
AND NOT EXISTS (SELECT 1 FROM copied_records AS copied WHERE copied.id = warning.id);

-- One row per successful compaction: the boundary, with what records before and after it add.
CREATE OR REPLACE VIEW compactions AS
SELECT
    boundary.id,
    boundary.session_id,
    boundary.chain,
    boundary.sequence,
    boundary.number,
    boundary.model,
    boundary.subagent_type,
    start."time" AS started,
    boundary."time" AS ended,
    CAST(boundary."time" AS DATE) AS day,
    boundary."trigger",
    start.trigger_reason,
    boundary.pre_tokens,
    boundary.pre_tokens_source,
    boundary.post_tokens,
    complete.tokens_before,
    complete.tokens_after,
    complete.tokens_saved,
    complete.cache_rewrite_tokens,
    coalesce(boundary.duration_ms, timing.duration_ms) AS duration_ms,
    coalesce(boundary.duration_source, timing.duration_source) AS duration_source,
    boundary.messages_since_last,
    boundary.messages_total,
    boundary.idle_ms,
    boundary.attempt_id,
    boundary.metadata
FROM compact_boundary AS boundary
LEFT JOIN compaction_start AS start ON start.id = boundary.attempt_id
LEFT JOIN compaction_complete AS complete ON complete.boundary_id = boundary.id
LEFT JOIN compaction_timing AS timing ON timing.boundary_id = boundary.id
WHERE boundary.inherited IS NOT TRUE
AND NOT EXISTS (SELECT 1 FROM copied_records AS copied WHERE copied.id = boundary.id);

-- One row per epoch: what a chain has after `begin_sequence` and before `end_sequence` (null: its end),
-- with the compactions that begin and end it (null: its first, a reset), the first warning in it from
-- 70% used on, and the responses in it, in the epoch before and in the one after.
CREATE OR REPLACE VIEW epochs AS
WITH begins AS (
    SELECT session_id, chain, 0 AS sequence, NULL AS compaction_id FROM readings
    UNION
    SELECT session_id, chain, 0, NULL FROM compactions
    UNION ALL
    SELECT session_id, chain, sequence, id FROM compactions
    UNION ALL
    SELECT session_id, chain, sequence, NULL
    FROM context_reset AS reset
    WHERE inherited IS NOT TRUE
    AND NOT EXISTS (SELECT 1 FROM copied_records AS copied WHERE copied.id = reset.id)
),
spans AS (
    SELECT
        session_id,
        chain,
        sequence AS begin_sequence,
        lead(sequence) OVER chains AS end_sequence,
        compaction_id AS begun_by,
        lead(compaction_id) OVER chains AS ended_by
    FROM begins
    WINDOW chains AS (PARTITION BY session_id, chain ORDER BY sequence)
),
counted AS (
    SELECT
        spans.session_id,
        spans.chain,
        begin_sequence,
        end_sequence,
        begun_by,
        ended_by,
        count(readings.id) AS responses
    FROM spans
    LEFT JOIN readings
        ON readings.session_id = spans.session_id
        AND readings.chain = spans.chain
        AND readings.sequence > begin_sequence
        AND (end_sequence IS NULL OR readings.sequence < end_sequence)
    GROUP BY spans.session_id, spans.chain, begin_sequence, end_sequence, begun_by, ended_by
),
warned AS (
    SELECT spans.session_id, spans.chain, begin_sequence, min(warnings.sequence) AS warned_sequence
    FROM spans
    JOIN warnings
        ON warnings.session_id = spans.session_id
        AND warnings.chain = spans.chain
        AND warnings.sequence > begin_sequence
        AND (end_sequence IS NULL OR warnings.sequence < end_sequence)
        AND threshold_percent >= 70
    GROUP BY spans.session_id, spans.chain, begin_sequence
)
SELECT
    counted.*,
    warned_sequence,
    lag(responses) OVER chains AS responses_before,
    lead(responses) OVER chains AS responses_after
FROM counted
LEFT JOIN warned
    ON warned.session_id = counted.session_id
    AND warned.chain = counted.chain
    AND warned.begin_sequence = counted.begin_sequence
WINDOW chains AS (
    PARTITION BY counted.session_id, counted.chain ORDER BY counted.begin_sequence
);

-- Readings by their places in epochs: the first response of one has `since` 1, its last `until` 1.
-- `is_after` and `is_before` are of a compaction that has responses before and after it.
CREATE OR REPLACE VIEW epoch_readings AS
SELECT
    readings.*,
    epochs.begin_sequence,
    row_number() OVER (
        PARTITION BY readings.session_id, readings.chain, begin_sequence ORDER BY readings.sequence
    ) AS since,
    row_number() OVER (
        PARTITION BY readings.session_id, readings.chain, begin_sequence
        ORDER BY readings.sequence DESC
    ) AS until,
    begun_by IS NOT NULL AND responses_before > 0 AS is_after,
    ended_by IS NOT NULL AND responses_after > 0 AS is_before
FROM readings
JOIN epochs
    ON epochs.session_id = readings.session_id
    AND epochs.chain = readings.chain
    AND begin_sequence < readings.sequence
    AND (end_sequence IS NULL OR end_sequence > readings.sequence);

-- One row per compaction that was begun or refused: how it ended; null while it is open.
CREATE OR REPLACE VIEW attempts AS
SELECT
    start.id,
    start.session_id,
    start.chain,
    start.model,
    start."time" AS started,
    start.used_tokens,
    start.context_used_percent AS used_percent,
    CASE WHEN boundary.id IS NOT NULL THEN 'succeeded' ELSE failed.outcome END AS outcome,
    coalesce(boundary."time", failed."time") AS ended,
    coalesce(boundary.duration_ms, failed.duration_ms) AS duration_ms,
    failed.error
FROM compaction_start AS start
LEFT JOIN compact_boundary AS boundary ON boundary.attempt_id = start.id
LEFT JOIN compaction_failed AS failed ON failed.attempt_id = start.id
WHERE start.inherited IS NOT TRUE
AND NOT EXISTS (SELECT 1 FROM copied_records AS copied WHERE copied.id = start.id)
UNION ALL
SELECT
    id,
    session_id,
    chain,
    model,
    NULL,
    NULL,
    NULL,
    outcome,
    "time",
    duration_ms,
    error
FROM compaction_failed AS failed
WHERE attempt_id IS NULL AND inherited IS NOT TRUE
AND NOT EXISTS (SELECT 1 FROM copied_records AS copied WHERE copied.id = failed.id);

-- One row per compaction: why it was made, what it cost, and what is known of what it kept.
CREATE OR REPLACE VIEW receipts AS
SELECT
    compactions.id,
    compactions.session_id,
    compactions.chain,
    compactions.number,
    compactions.ended,
    compactions."trigger",
    boundary.receipt_reason AS reason,
    boundary.receipt_command_id AS command_id,
    compactions.pre_tokens,
    compactions.tokens_after,
    compactions.tokens_saved,
    compactions.duration_ms,
    compactions.cache_rewrite_tokens,
    boundary.receipt_summary_input_tokens AS summary_input_tokens,
    boundary.receipt_summary_cache_read_tokens AS summary_cache_read_tokens,
    boundary.receipt_summary_output_tokens AS summary_output_tokens,
    boundary.summary_cache_creation_tokens,
    boundary.summary_cache_creation_1h_tokens,
    boundary.receipt_messages_archived AS messages_archived,
    length(summary.summary) AS summary_characters,
    pins.pins_kept AS turns_kept,
    pins.pins_lost AS turns_lost
FROM compactions
JOIN compact_boundary AS boundary ON boundary.id = compactions.id
LEFT JOIN compaction_summary AS summary ON summary.boundary_id = compactions.id
LEFT JOIN pins_checked AS pins ON pins.boundary_id = compactions.id;

CREATE OR REPLACE VIEW sessions AS
WITH facts AS (
    SELECT
        session_id,
        max_by(runtime, sequence) AS runtime,
        max_by(runtime_version, sequence) AS runtime_version,
        max_by(cwd, sequence) AS folder,
        max_by(forked_from, sequence) AS forked_from,
        max_by(publisher_agent_id, sequence) AS agent_id
    FROM session_info
    GROUP BY session_id
),
sizes AS (
    SELECT
        session_id,
        min("time") AS first_reading,
        max("time") AS last_reading,
        count(*) AS responses,
        count(DISTINCT chain) AS chains,
        max_by(model, sequence) FILTER (WHERE chain = 'main' AND NOT is_late) AS model,
        max_by(used_tokens, sequence) FILTER (WHERE chain = 'main' AND NOT is_late) AS used_tokens,
        max_by(used_percent, sequence) FILTER (WHERE chain = 'main' AND NOT is_late) AS used_percent,
        max_by(window_tokens, sequence) FILTER (WHERE chain = 'main' AND NOT is_late) AS window_tokens,
        max_by(window_source, sequence) FILTER (WHERE chain = 'main' AND NOT is_late) AS window_source,
        max_by(messages_total, sequence) FILTER (WHERE chain = 'main') AS messages,
        max(used_percent) FILTER (WHERE chain = 'main') AS most_used_percent,
        max(used_tokens) FILTER (WHERE chain = 'main') AS most_used_tokens,
        max(used_percent) FILTER (WHERE chain = 'main' AND NOT is_window_assumed) AS most_known_percent,
        sum(input_tokens) AS input_tokens,
        sum(cache_creation_tokens) AS cache_creation_tokens,
        sum(cache_read_tokens) AS cache_read_tokens,
        sum(output_tokens) AS output_tokens
    FROM readings
    GROUP BY session_id
),
compacted AS (
    SELECT
        session_id,
        count(*) AS compactions,
        count(*) FILTER (WHERE "trigger" = 'manual') AS manual_compactions,
        count(*) FILTER (WHERE "trigger" = 'auto') AS automatic_compactions,
        sum(tokens_saved) AS tokens_saved,
        sum(duration_ms) FILTER (WHERE duration_source <> 'precomputed') AS compaction_ms
    FROM compactions
    GROUP BY session_id
),
failures AS (
    SELECT session_id, count(*) AS failed_compactions
    FROM attempts
    WHERE outcome IN ('failed', 'blocked')
    GROUP BY session_id
),
warned AS (
    SELECT session_id, count(*) AS warnings
    FROM warnings
    GROUP BY session_id
)
SELECT
    coalesce(facts.session_id, sizes.session_id, compacted.session_id) AS session_id,
    facts.runtime,
    facts.runtime_version,
    facts.folder,
    facts.forked_from,
    facts.agent_id,
    sizes.model,
    sizes.first_reading,
    sizes.last_reading,
    coalesce(sizes.responses, 0) AS responses,
    sizes.chains,
    sizes.messages,
    sizes.used_tokens,
    sizes.used_percent,
    sizes.window_tokens,
    sizes.window_source,
    sizes.most_used_percent,
    sizes.most_used_tokens,
    sizes.most_used_percent > coalesce(sizes.most_known_percent, -1) AS is_most_assumed,
    sizes.input_tokens,
    sizes.cache_creation_tokens,
    sizes.cache_read_tokens,
    sizes.output_tokens,
    coalesce(compacted.compactions, 0) AS compactions,
    coalesce(compacted.manual_compactions, 0) AS manual_compactions,
    coalesce(compacted.automatic_compactions, 0) AS automatic_compactions,
    coalesce(failures.failed_compactions, 0) AS failed_compactions,
    compacted.tokens_saved,
    compacted.compaction_ms,
    coalesce(warned.warnings, 0) AS warnings
FROM facts
FULL JOIN sizes ON sizes.session_id = facts.session_id
FULL JOIN compacted ON compacted.session_id = coalesce(facts.session_id, sizes.session_id)
LEFT JOIN failures
    ON failures.session_id = coalesce(facts.session_id, sizes.session_id, compacted.session_id)
LEFT JOIN warned
    ON warned.session_id = coalesce(facts.session_id, sizes.session_id, compacted.session_id);

-- One row per call of a tool, with its result where there is one. What `--no-text` publishes is the
-- same but for the hashes. Derived where asked for: a topic has none unless its deriver was set so.
CREATE OR REPLACE VIEW tools AS
SELECT
    call.id,
    call.session_id,
    call.chain,
    call.sequence,
    call."time" AS called,
    unix_millis(result."time") - unix_millis(call."time") AS duration_ms,
    call.model,
    call.subagent_type,
    call.tool,
    call.use_id,
    call.input_hash,
    call.path_hashes,
    call.changes_files,
    call.bytes AS input_bytes,
    call.tokens_estimated AS input_tokens_estimated,
    result.bytes AS result_bytes,
    result.tokens_estimated AS result_tokens_estimated,
    result.is_error
FROM tool_use AS call
LEFT JOIN (
    SELECT * FROM tool_use
    WHERE part = 'result' AND use_id IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY session_id, use_id ORDER BY sequence) = 1
) AS result
    ON result.session_id = call.session_id AND result.use_id = call.use_id
WHERE call.part = 'call' AND call.inherited IS NOT TRUE
AND NOT EXISTS (SELECT 1 FROM copied_records AS copied WHERE copied.id = call.id);

CREATE OR REPLACE VIEW user_turns AS
SELECT
    id,
    session_id,
    chain,
    sequence,
    "time",
    row_number() OVER (PARTITION BY session_id, chain ORDER BY sequence) AS number,
    characters,
    tokens_estimated
FROM user_turn AS turn
WHERE inherited IS NOT TRUE
AND chain = 'main'
AND NOT EXISTS (SELECT 1 FROM copied_records AS copied WHERE copied.id = turn.id);
