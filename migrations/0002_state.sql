-- What the sidecar keeps: leases, positions, the ledger, dead letters, the log and the audit trail.
-- Operators read these through the views of sql/api; private tables begin with an underscore.
-- Locks: none on existing tables (everything is new).
SET LOCAL lock_timeout = '5s';

CREATE TABLE connector._endpoint (
    connector_id    uuid PRIMARY KEY,
    connector       text NOT NULL,
    tenant_id       bigint NOT NULL,
    table_name      text NOT NULL UNIQUE,
    mapping_version integer NOT NULL DEFAULT 1,
    table_made      boolean NOT NULL DEFAULT false,
    cluster_id      text,
    topic           text,
    topic_id        uuid,
    seek_to         timestamptz,
    poison_chunks   integer NOT NULL DEFAULT 0,
    data_as_of      timestamptz,
    fence           bigint NOT NULL DEFAULT 0,
    lease_run       uuid,
    lease_sidecar   text,
    lease_until     timestamptz
) WITH (fillfactor = 50);
COMMENT ON TABLE connector._endpoint IS 'One row a connector: the identity of what it reads, and the lease of the run that is writing (fence, holder, expiry by the database clock).';

CREATE TABLE connector._cursor (
    connector_id uuid NOT NULL,
    partition    integer NOT NULL,
    tenant_id    bigint NOT NULL,
    next_offset  bigint NOT NULL,
    leader_epoch integer NOT NULL DEFAULT -1,
    fence        bigint NOT NULL DEFAULT 0,
    last_chunk   uuid,
    sought       boolean NOT NULL DEFAULT false,
    updated_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (connector_id, partition)
) WITH (fillfactor = 50);
COMMENT ON TABLE connector._cursor IS 'One row a partition: the next offset to read, moved only by compare-and-set on next_offset and fence, in the transaction of the rows.';

CREATE TABLE connector._run (
    run_id             uuid PRIMARY KEY,
    connector_id       uuid NOT NULL,
    connector          text NOT NULL,
    tenant_id          bigint NOT NULL,
    endpoint           text NOT NULL DEFAULT 'default',
    status             text NOT NULL DEFAULT 'Scheduled'
        CHECK (status IN ('Scheduled', 'Running', 'Completed', 'Partial', 'Failed', 'Cancelled')),
    code               text,
    message            text,
    hint               text,
    retryable          boolean NOT NULL DEFAULT false,
    started_by         text NOT NULL CHECK (started_by IN ('manual', 'schedule', 'trigger', 'continuous', 'retry')),
    requested_by       text NOT NULL,
    if_active          text NOT NULL DEFAULT 'skip' CHECK (if_active IN ('skip', 'wait')),
    records_out        bigint NOT NULL DEFAULT 0,
    duplicates         bigint NOT NULL DEFAULT 0,
    dead_letters       bigint NOT NULL DEFAULT 0,
    filtered           bigint NOT NULL DEFAULT 0,
    tombstones_applied bigint NOT NULL DEFAULT 0,
    chunks             integer NOT NULL DEFAULT 0,
    poison_chunks      integer NOT NULL DEFAULT 0,
    scheduled_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at         timestamptz,
    ended_at           timestamptz,
    measured_at        timestamptz,
    sidecar            text,
    spec               jsonb,
    mapping_version    integer,
    job_id             bigint,
    created_xid        xid8 NOT NULL DEFAULT pg_current_xact_id(),
    cancel_requested   boolean NOT NULL DEFAULT false,
    cancelled_by       text,
    joined_run         uuid
) WITH (fillfactor = 70);
CREATE INDEX _run_connector ON connector._run (connector_id, scheduled_at DESC);
CREATE INDEX _run_active ON connector._run (connector_id) WHERE status IN ('Scheduled', 'Running');
COMMENT ON TABLE connector._run IS 'The ledger: one row a run, with counters that commit in the transaction of the rows they count.';

CREATE TABLE connector._run_partition (
    run_id             uuid NOT NULL,
    partition          integer NOT NULL,
    tenant_id          bigint NOT NULL,
    topic              text NOT NULL,
    start_offset       bigint NOT NULL,
    target_offset      bigint NOT NULL,
    next_offset        bigint NOT NULL,
    lost_from          bigint,
    lost_to            bigint,
    reached            text CHECK (reached IN ('at target', 'proved empty to target', 'not proved', 'short')),
    written            bigint NOT NULL DEFAULT 0,
    duplicates         bigint NOT NULL DEFAULT 0,
    dead_letters       bigint NOT NULL DEFAULT 0,
    filtered           bigint NOT NULL DEFAULT 0,
    tombstones_applied bigint NOT NULL DEFAULT 0,
    no_record          bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, partition)
) WITH (fillfactor = 50);
COMMENT ON TABLE connector._run_partition IS 'What a run planned and did in each partition; next_offset minus start_offset equals the sum of its counters.';

CREATE TABLE connector._dlq (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id    bigint NOT NULL,
    connector_id uuid NOT NULL,
    connector    text NOT NULL,
    run_id       uuid NOT NULL,
    reason       text NOT NULL,
    attempts     integer NOT NULL DEFAULT 1,
    message      text NOT NULL,
    payload      jsonb NOT NULL,
    status       text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'discarded', 'replayed')),
    topic        text NOT NULL,
    topic_id     uuid,
    partition    integer NOT NULL,
    "offset"     bigint NOT NULL,
    key          text,
    headers      jsonb,
    raw          bytea,
    sqlstate     text,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE NULLS NOT DISTINCT (connector_id, topic_id, topic, partition, "offset")
);
CREATE INDEX _dlq_run ON connector._dlq (run_id);
CREATE INDEX _dlq_open ON connector._dlq (connector_id) WHERE status = 'open';
COMMENT ON TABLE connector._dlq IS 'Dead letters: messages that could not be landed, with their coordinates, reason and raw bytes.';

CREATE TABLE connector._log (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    run_id    uuid,
    connector text,
    tenant_id bigint NOT NULL,
    level     text NOT NULL CHECK (level IN ('INFO', 'WARN', 'ERROR')),
    message   text NOT NULL
);
CREATE INDEX _log_run ON connector._log (run_id);
COMMENT ON TABLE connector._log IS 'The runs'' own words.';

CREATE TABLE connector._audit (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    role      text NOT NULL DEFAULT session_user,
    action    text NOT NULL,
    connector text,
    tenant_id bigint NOT NULL,
    detail    jsonb NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE connector._audit IS 'Every gesture that moves or erases something: who, when, what.';

CREATE TABLE connector._lag (
    connector_id     uuid NOT NULL,
    partition        integer NOT NULL,
    tenant_id        bigint NOT NULL,
    topic            text NOT NULL,
    log_start_offset bigint NOT NULL,
    high_watermark   bigint NOT NULL,
    measured_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (connector_id, partition)
);
COMMENT ON TABLE connector._lag IS 'Log start and high watermark of each partition as the last run measured them.';

CREATE TABLE connector._column (
    connector_id uuid NOT NULL,
    column_name  text NOT NULL,
    tenant_id    bigint NOT NULL,
    field        text NOT NULL,
    data_type    text NOT NULL,
    added_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    added_by_run uuid,
    PRIMARY KEY (connector_id, column_name)
);
COMMENT ON TABLE connector._column IS 'Column history of the connector tables: which field became which column, by which run.';

CREATE TABLE connector._sidecar (
    sidecar      text PRIMARY KEY,
    host         text NOT NULL,
    version      text NOT NULL,
    backend_pid  integer NOT NULL,
    started_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    running      integer NOT NULL DEFAULT 0
);
COMMENT ON TABLE connector._sidecar IS 'The sidecars that serve this database, by their heartbeat.';

DO $do$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY['_endpoint', '_cursor', '_run', '_run_partition', '_dlq', '_log', '_audit', '_lag', '_column'] LOOP
        EXECUTE format('ALTER TABLE connector.%I ENABLE ROW LEVEL SECURITY', v_table);
        EXECUTE format('CREATE POLICY tenant_isolation ON connector.%I USING (tenant_id = (SELECT connector.current_tenant()))', v_table);
    END LOOP;
END
$do$;
