-- What a run is to read, stored once.

CREATE OR REPLACE FUNCTION connector._save_plan(run_id uuid, fence bigint, plan jsonb)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._save_plan(run_id, fence, plan)
--   Stores a run's targets and the measured heads, and moves the positions to where the run begins (a first read, a sought
--   position, a lost range). May be repeated until the first chunk has landed: the sidecar may not know whether its
--   commit went through.
-- plan:    {"cluster_id","topic","topic_id","measured_at","partitions":[{"partition","start","target","epoch","lost_from",
--          "lost_to","log_start","high_watermark"}]}; start and target are next offsets, lost_from and lost_to lost ones.
-- Errors:  KC010 the lease is no longer this fence's; KC011 the run has landed a chunk already.
-- Locks:   endpoint, cursor, run.
-- Touches: connector._endpoint, _cursor, _run, _run_partition, _lag.
DECLARE
    v_end      connector._endpoint;
    v_measured timestamptz;
BEGIN
    SELECT e.* INTO v_end
    FROM connector._endpoint AS e
    WHERE e.connector_id = (SELECT r.connector_id FROM connector._run AS r WHERE r.run_id = _save_plan.run_id)
        AND e.lease_run = _save_plan.run_id
    FOR UPDATE;
    IF NOT FOUND OR v_end.fence <> _save_plan.fence THEN
        RAISE EXCEPTION 'the lease of run % has passed on', _save_plan.run_id
            USING ERRCODE = 'KC010', HINT = 'Internal: another sidecar holds the run now; see connector.runs.';
    END IF;

    -- The sidecar's clock said when. Where ours says that this was before the run's start or is yet to come, that clock is off,
    -- and the start is what certainly was before the measurement: data_as_of must never be later than it.
    SELECT CASE WHEN (plan ->> 'measured_at')::timestamptz BETWEEN r.started_at AND clock_timestamp()
        THEN (plan ->> 'measured_at')::timestamptz ELSE r.started_at END INTO v_measured
    FROM connector._run AS r
    WHERE r.run_id = _save_plan.run_id;

    INSERT INTO connector._cursor AS c (connector_id, partition, tenant_id, next_offset, leader_epoch, fence)
    SELECT v_end.connector_id, p.partition, v_end.tenant_id, p.start, coalesce(p.epoch, -1), _save_plan.fence
    FROM jsonb_to_recordset(plan -> 'partitions') AS p (partition integer, start bigint, epoch integer)
    ORDER BY p.partition
    ON CONFLICT ON CONSTRAINT _cursor_pkey DO UPDATE
    SET next_offset = excluded.next_offset,
        leader_epoch = CASE WHEN c.next_offset = excluded.next_offset THEN c.leader_epoch ELSE excluded.leader_epoch END,
        fence = excluded.fence,
        last_chunk = CASE WHEN c.next_offset = excluded.next_offset THEN c.last_chunk END,
        sought = false,
        updated_at = clock_timestamp()
    WHERE c.next_offset <> excluded.next_offset OR c.sought OR c.fence <> excluded.fence;

    UPDATE connector._endpoint AS e
    SET cluster_id = coalesce(plan ->> 'cluster_id', e.cluster_id),
        -- A broker that hides its ids for a while must not make us forget them; another topic's id is not this one's.
        topic_id = coalesce((plan ->> 'topic_id')::uuid, CASE WHEN e.topic = plan ->> 'topic' THEN e.topic_id END),
        topic = plan ->> 'topic',
        seek_to = NULL
    WHERE e.connector_id = v_end.connector_id;

    UPDATE connector._run AS r
    SET measured_at = v_measured
    WHERE r.run_id = _save_plan.run_id AND r.status = 'Running' AND r.chunks = 0;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'run % cannot be planned again: it has ended or has landed a chunk', _save_plan.run_id
            USING ERRCODE = 'KC011', HINT = 'Internal: please report this with the lines of connector.log for the run.';
    END IF;
    PERFORM connector._store_targets(_save_plan.run_id, v_end, plan, v_measured);
END
$fn$;
COMMENT ON FUNCTION connector._save_plan(uuid, bigint, jsonb) IS 'Internal: store the targets of a run and move the positions to where it begins.';
REVOKE ALL ON FUNCTION connector._save_plan(uuid, bigint, jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._store_targets(run_id uuid, held connector._endpoint, plan jsonb, measured_at timestamptz)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._store_targets(run_id, held, plan, measured_at)
--   The rows of a plan (see _save_plan): targets and measured heads, one a partition. A partition that is at its target
--   already says so at once, which spares a run with nothing to do an update at its end.
-- Touches: connector._run_partition, connector._lag (upsert).
BEGIN
    INSERT INTO connector._run_partition AS t
        (run_id, partition, tenant_id, topic, start_offset, target_offset, next_offset, lost_from, lost_to, reached)
    SELECT _store_targets.run_id, p.partition, held.tenant_id, plan ->> 'topic', p.start, p.target, p.start, p.lost_from, p.lost_to,
        CASE WHEN p.start = p.target THEN 'at target' END
    FROM jsonb_to_recordset(plan -> 'partitions')
        AS p (partition integer, start bigint, target bigint, lost_from bigint, lost_to bigint)
    ON CONFLICT ON CONSTRAINT _run_partition_pkey DO UPDATE
    SET topic = excluded.topic,
        start_offset = excluded.start_offset,
        target_offset = excluded.target_offset,
        next_offset = excluded.next_offset,
        lost_from = excluded.lost_from,
        lost_to = excluded.lost_to,
        reached = excluded.reached;

    INSERT INTO connector._lag AS l (connector_id, partition, tenant_id, topic, log_start_offset, high_watermark, measured_at)
    SELECT held.connector_id, p.partition, held.tenant_id, plan ->> 'topic', p.log_start, p.high_watermark,
        _store_targets.measured_at
    FROM jsonb_to_recordset(plan -> 'partitions') AS p (partition integer, log_start bigint, high_watermark bigint)
    ON CONFLICT ON CONSTRAINT _lag_pkey DO UPDATE
    SET topic = excluded.topic,
        log_start_offset = excluded.log_start_offset,
        high_watermark = excluded.high_watermark,
        measured_at = excluded.measured_at;
END
$fn$;
COMMENT ON FUNCTION connector._store_targets(uuid, connector._endpoint, jsonb, timestamptz) IS 'Internal: the rows of a plan.';
REVOKE ALL ON FUNCTION connector._store_targets(uuid, connector._endpoint, jsonb, timestamptz) FROM PUBLIC;
