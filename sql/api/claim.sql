-- Taking a run: which one may work on a connector, what becomes of the others, and the fence that keeps the last holder out.

CREATE OR REPLACE FUNCTION connector._fold_waiting(run_id uuid, connector_id uuid)
RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._fold_waiting(run_id, connector_id)
--   Ends the other committed waiting runs of a connector: the run that starts now measures the broker after this, so it
--   does their work. One that somebody is looking at just now is passed over and runs later.
-- Touches: connector._run (update), the queue.
DECLARE
    v_folded uuid[];
BEGIN
    WITH folded AS (
        UPDATE connector._run AS r
        SET status = 'Cancelled',
            code = 'joined',
            message = format('joined run %s, which does the work', _fold_waiting.run_id),
            joined_run = _fold_waiting.run_id,
            ended_at = clock_timestamp()
        WHERE r.run_id IN (
            SELECT w.run_id
            FROM connector._run AS w
            WHERE w.connector_id = _fold_waiting.connector_id
                AND w.status = 'Scheduled'
                AND w.if_active = 'wait'
                AND w.started_by <> 'retry'
                AND w.run_id <> _fold_waiting.run_id
            FOR UPDATE SKIP LOCKED)
        RETURNING r.run_id)
    SELECT array_agg(f.run_id) INTO v_folded FROM folded AS f;
    IF v_folded IS NOT NULL THEN
        PERFORM connector._cancel_jobs(v_folded);
    END IF;
END
$fn$;
COMMENT ON FUNCTION connector._fold_waiting(uuid, uuid) IS 'Internal: end the waiting runs whose work a starting run does.';
REVOKE ALL ON FUNCTION connector._fold_waiting(uuid, uuid) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._claim_refusal(run connector._run, held connector._endpoint)
RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._claim_refusal(run, held)
--   Says why a run may not be claimed, and ends it where that is its end; null where it may. Another run is active as
--   long as it is Running, also while it waits to be taken over.
-- Touches: connector._run.
DECLARE
    v_other uuid;
BEGIN
    IF run.ended_at IS NOT NULL THEN
        RETURN 'ended';
    END IF;
    IF run.status = 'Running' THEN
        IF held.lease_run = run.run_id AND connector._lease_is_live(held.lease_until, held.lease_sidecar) THEN
            RETURN 'busy';
        END IF;
        RETURN NULL;
    END IF;
    IF run.cancel_requested THEN
        PERFORM connector._conclude(run.run_id, 'Cancelled', 'cancelled', format('cancelled by %s before it started', run.cancelled_by));
        RETURN 'ended';
    END IF;
    SELECT r.run_id INTO v_other FROM connector._run AS r WHERE r.connector_id = run.connector_id AND r.status = 'Running';
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF run.if_active = 'wait' THEN
        RETURN 'wait';
    END IF;
    PERFORM connector._conclude(run.run_id, 'Cancelled', 'skipped_active',
        format('skipped: run %s of connector "%s" is active', v_other, run.connector),
        format('To wait for the active run instead: SELECT connector.run(%L, ''wait'');', run.connector));
    RETURN 'skipped';
END
$fn$;
COMMENT ON FUNCTION connector._claim_refusal(connector._run, connector._endpoint) IS 'Internal: why a run may not be claimed now; null where it may.';
REVOKE ALL ON FUNCTION connector._claim_refusal(connector._run, connector._endpoint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._claim(run_id uuid, sidecar text, ttl interval)
RETURNS TABLE (outcome text, connector_id uuid, connector text, tenant_id bigint, table_name text, spec jsonb,
    mapping_version integer, fence bigint, status text, cluster_id text, topic text, topic_id uuid,
    seek_to timestamptz, poison_chunks integer, planned boolean, table_made boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._claim(run_id, sidecar, ttl)
--   Takes the lease of the run's connector for ttl, raises the fence and sets the run Running. Raising the fence of the
--   positions waits for a chunk of the last holder that is still being committed.
-- Returns: one row. outcome: claimed | ended | deleted | skipped | wait | busy; all else but status is null unless claimed.
-- Locks:   endpoint, cursor, retry, run.
DECLARE
    v_run  connector._run;
    v_held connector._endpoint;
BEGIN
    SELECT e.* INTO v_held
    FROM connector._endpoint AS e
    WHERE e.connector_id = (SELECT r.connector_id FROM connector._run AS r WHERE r.run_id = _claim.run_id)
    FOR UPDATE;
    -- Only now: the lock may have waited for another claim of the same run.
    SELECT r.* INTO v_run FROM connector._run AS r WHERE r.run_id = _claim.run_id;
    SELECT m.spec INTO spec FROM connector.manifest AS m WHERE m.connector_id = v_run.connector_id;
    outcome := CASE WHEN v_run.run_id IS NULL THEN 'ended' ELSE connector._claim_refusal(v_run, v_held) END;
    IF outcome IS NULL AND (v_held.connector_id IS NULL OR spec IS NULL) THEN
        PERFORM connector._conclude(_claim.run_id, 'Cancelled', 'deleted', format('connector "%s" was deleted', v_run.connector));
        outcome := 'deleted';
    END IF;

    IF outcome IS NULL THEN
        v_held.fence := v_held.fence + 1;
        UPDATE connector._cursor AS c SET fence = v_held.fence WHERE c.connector_id = v_run.connector_id;
        UPDATE connector._retry AS t SET fence = v_held.fence WHERE t.run_id = _claim.run_id AND NOT t.done;
        IF v_run.status = 'Running' THEN
            PERFORM connector._say(_claim.run_id, 'INFO', format('taken over by sidecar %s from %s', _claim.sidecar, v_run.sidecar));
        END IF;
        UPDATE connector._run AS r
        SET status = 'Running',
            started_at = coalesce(r.started_at, clock_timestamp()),
            sidecar = _claim.sidecar,
            spec = coalesce(r.spec, _claim.spec),
            mapping_version = coalesce(r.mapping_version, v_held.mapping_version),
            poison_chunks = CASE WHEN r.status = 'Scheduled' THEN v_held.poison_chunks ELSE r.poison_chunks END
        WHERE r.run_id = _claim.run_id AND r.ended_at IS NULL
        RETURNING r.* INTO v_run;
        -- Cancelled while we waited for its positions: the lease stays free; a fence raised in vain does no harm.
        outcome := CASE WHEN FOUND THEN 'claimed' ELSE 'ended' END;
    END IF;
    IF outcome <> 'claimed' THEN
        spec := NULL;
        SELECT r.status INTO status FROM connector._run AS r WHERE r.run_id = _claim.run_id;
        RETURN NEXT;
        RETURN;
    END IF;

    UPDATE connector._endpoint AS e
    SET fence = v_held.fence,
        lease_run = v_run.run_id,
        lease_sidecar = _claim.sidecar,
        lease_until = clock_timestamp() + _claim.ttl
    WHERE e.connector_id = v_run.connector_id;
    planned := EXISTS (SELECT FROM connector._run_partition AS p WHERE p.run_id = _claim.run_id);
    IF NOT planned AND v_run.started_by <> 'retry' THEN
        PERFORM connector._fold_waiting(v_run.run_id, v_run.connector_id);
    END IF;
    RETURN QUERY
    SELECT 'claimed', v_run.connector_id, v_run.connector, v_run.tenant_id, v_held.table_name, v_run.spec,
        v_run.mapping_version, v_held.fence, v_run.status, v_held.cluster_id, v_held.topic, v_held.topic_id,
        v_held.seek_to, v_run.poison_chunks, planned, v_held.table_made;
END
$fn$;
COMMENT ON FUNCTION connector._claim(uuid, text, interval) IS 'Internal: take the lease of a connector for a run.';
REVOKE ALL ON FUNCTION connector._claim(uuid, text, interval) FROM PUBLIC;
