-- Reads the next dead letters that a run is still to decode again, in the order of their offsets.
-- $1 uuid: run; $2 bigint: how many at most; $3 bigint: bytes of values at which to stop, one letter at least.
SELECT l.id, l.topic, l.topic_id, l.partition, l."offset", l.key, l.headers, l.raw
FROM (
    SELECT d.id, d.topic, d.topic_id, d.partition, d."offset", d.key, d.headers, d.raw,
        pg_catalog.sum(pg_catalog.octet_length(d.raw)) OVER w - pg_catalog.octet_length(d.raw) AS before
    FROM connector._retry AS t
    JOIN connector._dlq AS d ON d.id = t.letter_id
    WHERE t.run_id = $1 AND NOT t.done AND d.status = 'open' AND d.raw IS NOT NULL
    WINDOW w AS (ORDER BY d.topic, d.partition, d."offset", d.id)
    ORDER BY d.topic, d.partition, d."offset", d.id
    LIMIT $2) AS l
WHERE l.before < $3
