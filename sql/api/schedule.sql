-- Schedules: the manifest's triggers keep each connector's next slot; one sidecar, the leader, fires the slots that are due.

CREATE OR REPLACE FUNCTION connector._manifest_schedule()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._manifest_schedule()
--   AFTER INSERT, UPDATE, DELETE: keeps the connector's next slot. The row stays locked until the transaction ends, and
--   the leader passes over locked rows: a change or a removal counts from its commit.
-- Touches: connector._schedule (upsert, delete).
BEGIN
    IF TG_OP = 'DELETE' OR NEW.spec ->> 'schedule' IS NULL THEN
        DELETE FROM connector._schedule AS s WHERE s.connector_id = coalesce(NEW.connector_id, OLD.connector_id);
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' AND (NEW.spec ->> 'schedule', NEW.spec ->> 'window') IS NOT DISTINCT FROM (OLD.spec ->> 'schedule', OLD.spec ->> 'window') THEN
        RETURN NULL; -- a slot that is due stays due
    END IF;
    INSERT INTO connector._schedule AS s (connector_id, connector, tenant_id, schedule, "window", next_at)
    VALUES (NEW.connector_id, NEW.name, NEW.tenant_id, NEW.spec ->> 'schedule', NEW.spec ->> 'window', CASE
        WHEN NOT EXISTS (SELECT FROM connector._installation AS i WHERE i.held_since IS NOT NULL) THEN
            coalesce(connector._next_slot(NEW.spec ->> 'schedule', NEW.spec ->> 'window', clock_timestamp()), 'infinity')
    END)
    ON CONFLICT (connector_id) DO UPDATE
    SET schedule = excluded.schedule,
        "window" = excluded."window",
        next_at = excluded.next_at;
    RETURN NULL;
END
$fn$;
COMMENT ON FUNCTION connector._manifest_schedule() IS 'Internal: keeps the next slot of a connector.';
REVOKE ALL ON FUNCTION connector._manifest_schedule() FROM PUBLIC;

CREATE OR REPLACE TRIGGER manifest_schedule
AFTER INSERT OR UPDATE OR DELETE ON connector.manifest
FOR EACH ROW EXECUTE FUNCTION connector._manifest_schedule();
COMMENT ON TRIGGER manifest_schedule ON connector.manifest IS 'Keeps the next slot of the connector''s schedule.';

CREATE OR REPLACE FUNCTION connector._lead(sidecar text)
RETURNS boolean
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._lead(sidecar)
--   Takes or renews the lease of the leader: 10 s, judged by this server's clock. Another sidecar's is left alone while it
--   is live (see _lease_is_live); the row stays locked until the transaction ends, so that two never fire together.
-- Returns: whether the sidecar is the leader.
-- Touches: connector._leader (update).
BEGIN
    IF EXISTS (SELECT FROM connector._leader AS l WHERE l.sidecar <> _lead.sidecar AND connector._lease_is_live(l.lease_until, l.sidecar)) THEN
        RETURN false;
    END IF;
    UPDATE connector._leader AS l
    SET sidecar = _lead.sidecar,
        lease_until = clock_timestamp() + interval '10 seconds'
    WHERE l.one IN (
        SELECT o.one
        FROM connector._leader AS o
        WHERE o.sidecar IS NOT DISTINCT FROM _lead.sidecar OR NOT connector._lease_is_live(o.lease_until, o.sidecar)
        FOR UPDATE SKIP LOCKED);
    RETURN FOUND;
END
$fn$;
COMMENT ON FUNCTION connector._lead(text) IS 'Internal: be the sidecar that fires the schedules, if no other is.';
REVOKE ALL ON FUNCTION connector._lead(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._resign(sidecar text)
RETURNS void
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._resign(sidecar)
--   Gives up the lease of the leader, so that another sidecar need not wait for its end. Nothing where it is not ours.
-- Touches: connector._leader (update).
UPDATE connector._leader AS l SET sidecar = NULL, lease_until = NULL WHERE l.sidecar = _resign.sidecar
$fn$;
COMMENT ON FUNCTION connector._resign(text) IS 'Internal: no longer be the sidecar that fires the schedules.';
REVOKE ALL ON FUNCTION connector._resign(text) FROM PUBLIC;
