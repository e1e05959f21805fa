-- The product's own bookkeeping, checked by anyone at any time. Each function returns a row for each identity that does not
-- hold. Every check is one statement, so that runs may work meanwhile: what it compares commits in one transaction.

CREATE OR REPLACE FUNCTION connector._verify_ledger(tenant_id bigint)
RETURNS TABLE (identity text, connector text, run_id uuid, partition integer, detail text)
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._verify_ledger(tenant_id)
--   The ledger by itself: totals against partitions, counters against offsets, ends against targets. A lost range is no part
--   of the offsets that are accounted for: start_offset is where reading began.
-- Touches: connector._run, connector._run_partition (read).
SELECT 'advanced = written + duplicates + dead_letters + filtered + tombstones_applied + no_record', r.connector, p.run_id, p.partition,
    format('next_offset %s - start_offset %s, but the counters add up to %s', p.next_offset, p.start_offset,
        p.written + p.duplicates + p.dead_letters + p.filtered + p.tombstones_applied + p.no_record)
FROM connector._run_partition AS p
JOIN connector._run AS r ON r.run_id = p.run_id
WHERE r.tenant_id = _verify_ledger.tenant_id
    AND p.next_offset - p.start_offset <> p.written + p.duplicates + p.dead_letters + p.filtered + p.tombstones_applied + p.no_record
UNION ALL
SELECT 'start_offset <= next_offset <= target_offset, and = target_offset once Completed', r.connector, p.run_id, p.partition,
    format('%s: start_offset %s, next_offset %s, target_offset %s', r.status, p.start_offset, p.next_offset, p.target_offset)
FROM connector._run_partition AS p
JOIN connector._run AS r ON r.run_id = p.run_id
WHERE r.tenant_id = _verify_ledger.tenant_id
    AND (p.next_offset NOT BETWEEN p.start_offset AND p.target_offset OR (r.status = 'Completed' AND p.next_offset <> p.target_offset))
UNION ALL
SELECT 'totals of a run = sum of its partitions', r.connector, r.run_id, NULL,
    format('records_out %s, duplicates %s, dead_letters %s, filtered %s, tombstones_applied %s, but its partitions have %s, %s, %s, %s, %s',
        r.records_out, r.duplicates, r.dead_letters, r.filtered, r.tombstones_applied, s.records_out, s.duplicates, s.dead_letters,
        s.filtered, s.tombstones_applied)
FROM connector._run AS r
CROSS JOIN LATERAL (
    SELECT coalesce(sum(p.written + p.duplicates), 0) AS records_out,
        coalesce(sum(p.duplicates), 0) AS duplicates,
        coalesce(sum(p.dead_letters), 0) AS dead_letters,
        coalesce(sum(p.filtered), 0) AS filtered,
        coalesce(sum(p.tombstones_applied), 0) AS tombstones_applied
    FROM connector._run_partition AS p
    WHERE p.run_id = r.run_id) AS s
WHERE r.tenant_id = _verify_ledger.tenant_id
    AND r.started_by <> 'retry'
    AND (r.records_out, r.duplicates, r.dead_letters, r.filtered, r.tombstones_applied)
        IS DISTINCT FROM (s.records_out, s.duplicates, s.dead_letters, s.filtered, s.tombstones_applied)
UNION ALL
SELECT 'ended_at is set if and only if the run has ended', r.connector, r.run_id, NULL, format('%s, ended_at %s', r.status, r.ended_at)
FROM connector._run AS r
WHERE r.tenant_id = _verify_ledger.tenant_id AND (r.ended_at IS NULL) <> (r.status IN ('Scheduled', 'Running'))
$fn$;
COMMENT ON FUNCTION connector._verify_ledger(bigint) IS 'Internal: identities of the ledger that do not hold.';
REVOKE ALL ON FUNCTION connector._verify_ledger(bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._verify_positions(tenant_id bigint)
RETURNS TABLE (identity text, connector text, run_id uuid, partition integer, detail text)
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._verify_positions(tenant_id)
--   Leases and positions against the ledger. A position that was sought is not the last run's; read: full moves none.
-- Touches: connector._run, connector._run_partition, connector._cursor, connector._endpoint (read).
SELECT 'a Running run holds the lease of its connector', r.connector, r.run_id, NULL::integer,
    format('the lease is held by run %s', coalesce(e.lease_run::text, 'none'))
FROM connector._run AS r
LEFT JOIN connector._endpoint AS e ON e.connector_id = r.connector_id
WHERE r.tenant_id = _verify_positions.tenant_id AND r.status = 'Running' AND e.lease_run IS DISTINCT FROM r.run_id
UNION ALL
SELECT 'a lease belongs to a Running run', e.connector, e.lease_run, NULL, format('the run is %s', coalesce(r.status, 'not in the ledger'))
FROM connector._endpoint AS e
LEFT JOIN connector._run AS r ON r.run_id = e.lease_run
WHERE e.tenant_id = _verify_positions.tenant_id AND e.lease_run IS NOT NULL AND r.status IS DISTINCT FROM 'Running'
UNION ALL
SELECT 'the stored position = next_offset of the last run that planned the partition', e.connector, l.run_id, c.partition,
    format('the position is %s, the run left it at %s', c.next_offset, l.next_offset)
FROM connector._cursor AS c
JOIN connector._endpoint AS e ON e.connector_id = c.connector_id
CROSS JOIN LATERAL (
    SELECT p.run_id, p.next_offset
    FROM connector._run AS r
    JOIN connector._run_partition AS p ON p.run_id = r.run_id
    WHERE r.connector_id = c.connector_id AND p.partition = c.partition AND coalesce(r.spec ->> 'read', '') <> 'full'
    ORDER BY r.started_at DESC
    LIMIT 1) AS l
WHERE c.tenant_id = _verify_positions.tenant_id AND NOT c.sought AND l.next_offset <> c.next_offset
$fn$;
COMMENT ON FUNCTION connector._verify_positions(bigint) IS 'Internal: identities of leases and positions that do not hold.';
REVOKE ALL ON FUNCTION connector._verify_positions(bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._verify_letters(tenant_id bigint)
RETURNS TABLE (identity text, connector text, run_id uuid, partition integer, detail text)
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._verify_letters(tenant_id)
--   Dead letters against the ledger. A letter that is met again moves to the new run, so a run may have fewer than it
--   counted, never more; but every message it counted as one is a letter of some run still, at its offset.
-- Touches: connector.manifest, connector._run, connector._run_partition, connector._dlq (read).
SELECT 'letters of a run <= dead_letters it counted', r.connector, p.run_id, p.partition,
    format('connector.dlq has %s of this run, it counted %s', d.letters, p.dead_letters)
FROM connector._run AS r
JOIN connector._run_partition AS p ON p.run_id = r.run_id
JOIN (SELECT l.run_id, l.partition, count(*) AS letters FROM connector._dlq AS l GROUP BY l.run_id, l.partition) AS d
    ON d.run_id = p.run_id AND d.partition = p.partition
WHERE r.tenant_id = _verify_letters.tenant_id AND d.letters > p.dead_letters
UNION ALL
SELECT 'letters at the offsets of a run >= dead_letters it counted', r.connector, p.run_id, p.partition,
    format('connector.dlq has %s at offsets %s to %s, the run counted %s', d.letters, p.start_offset, p.next_offset - 1, p.dead_letters)
FROM connector.manifest AS m
JOIN connector._run AS r ON r.connector_id = m.connector_id
JOIN connector._run_partition AS p ON p.run_id = r.run_id
CROSS JOIN LATERAL (
    SELECT count(*) AS letters
    FROM connector._dlq AS l
    WHERE l.connector_id = r.connector_id AND l.topic = p.topic AND l.partition = p.partition
        AND l."offset" >= p.start_offset AND l."offset" < p.next_offset) AS d
WHERE m.tenant_id = _verify_letters.tenant_id AND p.dead_letters > 0 AND d.letters < p.dead_letters
$fn$;
COMMENT ON FUNCTION connector._verify_letters(bigint) IS 'Internal: identities of the dead letters that do not hold.';
REVOKE ALL ON FUNCTION connector._verify_letters(bigint) FROM PUBLIC;
