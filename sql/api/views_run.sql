-- The ledger as operators see it. A view only ever gains columns at its end.

CREATE OR REPLACE VIEW connector.runs WITH (security_invoker = on) AS
SELECT r.run_id,
    r.connector,
    r.endpoint,
    r.status,
    r.records_out + r.dead_letters + r.filtered + r.tombstones_applied AS records_in,
    r.records_out,
    r.dead_letters + r.filtered + r.tombstones_applied AS skipped,
    r.dead_letters,
    r.filtered,
    r.tombstones_applied,
    r.scheduled_at,
    r.started_at,
    r.ended_at,
    coalesce(r.ended_at, clock_timestamp()) - r.started_at AS duration,
    r.chunks,
    r.hint,
    r.started_by,
    r.requested_by,
    r.message,
    r.retryable,
    r.sidecar,
    r.duplicates,
    r.code
FROM connector._run AS r;
COMMENT ON VIEW connector.runs IS 'The ledger: one row a run, true at every moment, also while it works. records_in = records_out + skipped; skipped = dead_letters + filtered + tombstones_applied. Newest first: ORDER BY scheduled_at DESC. Columns are only ever added at the end.';
COMMENT ON COLUMN connector.runs.run_id IS 'What connector.run returned.';
COMMENT ON COLUMN connector.runs.connector IS 'Name of the connector, also after it was deleted.';
COMMENT ON COLUMN connector.runs.endpoint IS 'Always default.';
COMMENT ON COLUMN connector.runs.status IS 'Scheduled, Running, Completed, Partial, Failed or Cancelled.';
COMMENT ON COLUMN connector.runs.records_in IS 'Messages read: records_out + skipped.';
COMMENT ON COLUMN connector.runs.records_out IS 'Messages written to the table, with those that it already held (duplicates).';
COMMENT ON COLUMN connector.runs.skipped IS 'Messages that became no row: dead_letters + filtered + tombstones_applied.';
COMMENT ON COLUMN connector.runs.dead_letters IS 'Messages that could not be landed: connector.dlq.';
COMMENT ON COLUMN connector.runs.filtered IS 'Messages that the manifest''s filter left out.';
COMMENT ON COLUMN connector.runs.tombstones_applied IS 'Tombstones that deleted a row, or found none to delete.';
COMMENT ON COLUMN connector.runs.scheduled_at IS 'When the run was asked for.';
COMMENT ON COLUMN connector.runs.started_at IS 'When a sidecar first took it up.';
COMMENT ON COLUMN connector.runs.ended_at IS 'When it ended; null while it is Scheduled or Running.';
COMMENT ON COLUMN connector.runs.duration IS 'From its start to its end, or to now while it works.';
COMMENT ON COLUMN connector.runs.chunks IS 'Transactions that landed messages.';
COMMENT ON COLUMN connector.runs.hint IS 'What to do about the message.';
COMMENT ON COLUMN connector.runs.started_by IS 'manual, schedule, trigger, continuous or retry.';
COMMENT ON COLUMN connector.runs.requested_by IS 'The role that asked for it.';
COMMENT ON COLUMN connector.runs.message IS 'How it ended, in a sentence.';
COMMENT ON COLUMN connector.runs.retryable IS 'Whether the same run may well succeed if it is asked for again.';
COMMENT ON COLUMN connector.runs.sidecar IS 'The sidecar that works or last worked on it.';
COMMENT ON COLUMN connector.runs.duplicates IS 'Rows of records_out that the table already held.';
COMMENT ON COLUMN connector.runs.code IS 'How it ended, as one word of a closed list: docs/errors.md.';

CREATE OR REPLACE VIEW connector.run_partitions WITH (security_invoker = on) AS
SELECT p.run_id,
    p.topic,
    p.partition,
    p.start_offset,
    p.target_offset,
    p.next_offset,
    p.lost_from,
    p.lost_to,
    p.reached
FROM connector._run_partition AS p;
COMMENT ON VIEW connector.run_partitions IS 'What each run set out to read, and how far it came: one row a run and partition. Offsets are next offsets (the first one not yet read), but for lost_from and lost_to, which are both lost ones.';
COMMENT ON COLUMN connector.run_partitions.run_id IS 'The run, as in connector.runs.';
COMMENT ON COLUMN connector.run_partitions.topic IS 'The topic it read.';
COMMENT ON COLUMN connector.run_partitions.partition IS 'The partition.';
COMMENT ON COLUMN connector.run_partitions.start_offset IS 'Where the run began to read: after the lost range, if there was one.';
COMMENT ON COLUMN connector.run_partitions.target_offset IS 'Where it stops: the end as it was measured when the run started.';
COMMENT ON COLUMN connector.run_partitions.next_offset IS 'The first offset that it has not read yet.';
COMMENT ON COLUMN connector.run_partitions.lost_from IS 'First offset that the broker no longer had; null where nothing was lost.';
COMMENT ON COLUMN connector.run_partitions.lost_to IS 'Last offset that the broker no longer had.';
COMMENT ON COLUMN connector.run_partitions.reached IS 'at target, proved empty to target, not proved, or short; null while it works.';

CREATE OR REPLACE VIEW connector.accounting WITH (security_invoker = on) AS
SELECT p.run_id,
    r.connector,
    p.topic,
    p.partition,
    p.start_offset,
    p.next_offset,
    p.next_offset - p.start_offset AS advanced,
    p.written,
    p.duplicates,
    p.dead_letters,
    p.filtered,
    p.tombstones_applied,
    p.no_record
FROM connector._run_partition AS p
JOIN connector._run AS r ON r.run_id = p.run_id;
COMMENT ON VIEW connector.accounting IS 'Where every offset of a run went, one row a run and partition: advanced = written + duplicates + dead_letters + filtered + tombstones_applied + no_record. A lost range is not part of it: start_offset is where reading began. connector.verify() checks this.';
COMMENT ON COLUMN connector.accounting.run_id IS 'The run, as in connector.runs.';
COMMENT ON COLUMN connector.accounting.connector IS 'Name of the connector.';
COMMENT ON COLUMN connector.accounting.topic IS 'The topic it read.';
COMMENT ON COLUMN connector.accounting.partition IS 'The partition.';
COMMENT ON COLUMN connector.accounting.start_offset IS 'Where the run began to read: after the lost range, if there was one.';
COMMENT ON COLUMN connector.accounting.next_offset IS 'The first offset that it has not read yet.';
COMMENT ON COLUMN connector.accounting.advanced IS 'next_offset minus start_offset.';
COMMENT ON COLUMN connector.accounting.written IS 'Messages that became a row.';
COMMENT ON COLUMN connector.accounting.duplicates IS 'Messages that the table already held.';
COMMENT ON COLUMN connector.accounting.dead_letters IS 'Messages that could not be landed: connector.dlq.';
COMMENT ON COLUMN connector.accounting.filtered IS 'Messages that the manifest''s filter left out.';
COMMENT ON COLUMN connector.accounting.tombstones_applied IS 'Tombstones that deleted a row, or found none to delete.';
COMMENT ON COLUMN connector.accounting.no_record IS 'Offsets that hold no readable record: transaction markers, aborted records, compaction gaps.';

CREATE OR REPLACE VIEW connector.log WITH (security_invoker = on) AS
SELECT l.at,
    l.run_id,
    l.connector,
    l.level,
    l.message
FROM connector._log AS l;
COMMENT ON VIEW connector.log IS 'The runs'' own words, as in the sidecar''s log. In order: ORDER BY at.';
COMMENT ON COLUMN connector.log.at IS 'When it was said, by the database''s clock.';
COMMENT ON COLUMN connector.log.run_id IS 'The run it is about, as in connector.runs.';
COMMENT ON COLUMN connector.log.connector IS 'Name of the connector.';
COMMENT ON COLUMN connector.log.level IS 'INFO, WARN or ERROR.';
COMMENT ON COLUMN connector.log.message IS 'What was said.';

CREATE OR REPLACE VIEW connector.progress WITH (security_invoker = on) AS
SELECT s.connector,
    s.run_id,
    s.done,
    s.target,
    s.percent,
    repeat('#', (s.percent / 5)::integer) || repeat('.', 20 - (s.percent / 5)::integer) AS bar,
    round(s.done / s.seconds)::bigint AS rows_per_second,
    CASE WHEN s.done > 0 THEN make_interval(secs => round((s.target - s.done) * s.seconds / s.done)::double precision) END AS eta
FROM (
    SELECT r.connector,
        r.run_id,
        t.done,
        t.target,
        CASE WHEN t.target > 0 THEN trunc(100.0 * t.done / t.target, 1) ELSE 0 END AS percent,
        greatest(extract(epoch FROM clock_timestamp() - coalesce(r.measured_at, r.started_at)), 0.001) AS seconds
    FROM connector._run AS r
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(p.next_offset - p.start_offset), 0)::bigint AS done,
            coalesce(sum(p.target_offset - p.start_offset), 0)::bigint AS target
        FROM connector._run_partition AS p
        WHERE p.run_id = r.run_id) AS t
    WHERE r.status = 'Running') AS s;
COMMENT ON VIEW connector.progress IS 'One row a Running run: offsets done and to do, since it measured the heads.';
COMMENT ON COLUMN connector.progress.connector IS 'Name of the connector.';
COMMENT ON COLUMN connector.progress.run_id IS 'The run, as in connector.runs.';
COMMENT ON COLUMN connector.progress.done IS 'Offsets read so far, over all partitions.';
COMMENT ON COLUMN connector.progress.target IS 'Offsets to read in all; 0 until the heads are measured.';
COMMENT ON COLUMN connector.progress.percent IS 'done of target, rounded down.';
COMMENT ON COLUMN connector.progress.bar IS 'percent as a bar of 20 characters.';
COMMENT ON COLUMN connector.progress.rows_per_second IS 'Offsets a second since the heads were measured.';
COMMENT ON COLUMN connector.progress.eta IS 'Time left at that speed; null before the first chunk.';
