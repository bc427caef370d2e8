-- How many files are read again after a compaction that had been read before it?
WITH touched AS (
    SELECT session_id, chain, sequence, explode(path_hashes) AS path, changes_files
    FROM tools
),
around AS (
    SELECT
        boundary.id,
        touched.path,
        bool_or(touched.sequence < boundary.sequence) AS is_before,
        bool_or(touched.sequence > boundary.sequence AND touched.changes_files IS NOT TRUE)
            AS is_read_after
    FROM compactions AS boundary
    JOIN touched
        ON touched.session_id = boundary.session_id AND touched.chain = boundary.chain
    GROUP BY ALL
)
SELECT
    boundary.session_id,
    boundary.chain,
    boundary.number,
    count(*) FILTER (WHERE around.is_before) AS files_before,
    count(*) FILTER (WHERE around.is_before AND around.is_read_after) AS read_again
FROM compactions AS boundary
JOIN around ON around.id = boundary.id
GROUP BY ALL
ORDER BY boundary.session_id, boundary.chain, boundary.number;
