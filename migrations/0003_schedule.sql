-- Schedules: the next slot of each connector, the sidecar that fires the slots, and which database they belong to.
-- Why here: the manifest's triggers keep the slots in the transaction of the change, so that it counts from its commit.
-- Locks: none on existing tables (everything is new); the manifest is read once.
SET LOCAL lock_timeout = '5s';

CREATE TABLE connector._schedule (
    connector_id uuid PRIMARY KEY,
    connector    text NOT NULL,
    tenant_id    bigint NOT NULL,
    schedule     text NOT NULL,
    "window"     text,
    next_at      timestamptz,
    last_slot    timestamptz
) WITH (fillfactor = 70);
COMMENT ON TABLE connector._schedule IS 'One row a connector with a schedule: its next slot inside the window (null: not reckoned yet; infinity: there is none) and the last one that was dealt with.';
ALTER TABLE connector._schedule ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON connector._schedule USING (tenant_id = (SELECT connector.current_tenant()));

-- Slots are reckoned by the functions of sql/api, which come after this file: the first look of a sidecar fills next_at.
INSERT INTO connector._schedule (connector_id, connector, tenant_id, schedule, "window")
SELECT m.connector_id, m.name, m.tenant_id, m.spec ->> 'schedule', m.spec ->> 'window'
FROM connector.manifest AS m
WHERE m.spec ->> 'schedule' IS NOT NULL;

CREATE TABLE connector._leader (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    sidecar     text,
    lease_until timestamptz
) WITH (fillfactor = 50);
COMMENT ON TABLE connector._leader IS 'One row: the sidecar that fires the slots of all schedules, and until when by the database clock.';
INSERT INTO connector._leader DEFAULT VALUES;

CREATE TABLE connector._installation (
    one               boolean PRIMARY KEY DEFAULT true CHECK (one),
    system_identifier bigint,
    database_name     text NOT NULL,
    adopted_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    held_since        timestamptz
);
COMMENT ON TABLE connector._installation IS 'At most one row: the database whose schedules run, as the first sidecar or connector.adopt() found it; held_since says since when this is known to be another one.';
