-- How many sessions, responses and compactions are there?
SELECT
    count(*) AS sessions,
    sum(responses) AS responses,
    sum(compactions) AS compactions,
    sum(automatic_compactions) AS automatic,
    sum(manual_compactions) AS manual,
    sum(compactions - automatic_compactions - manual_compactions) AS other,
    sum(failed_compactions) AS failed,
    count(*) FILTER (WHERE compactions > 0) AS compacted_sessions,
    count(*) FILTER (WHERE most_used_percent >= 80) AS sessions_at_80,
    coalesce(bool_or(most_used_percent >= 80 AND is_most_assumed), FALSE) AS some_windows_assumed,
    min(first_reading) AS first,
    max(last_reading) AS last
FROM sessions;
