-- Dead letters that a run decodes again: which ones, and how far the run has come with them.
-- Why here: what a position is to other runs, these rows are to a retry: they are locked, compared by fence and moved on in the
-- transaction of the row that a letter becomes.
-- Locks: none on existing tables (everything is new).
SET LOCAL lock_timeout = '5s';

CREATE TABLE connector._retry (
    run_id    uuid NOT NULL,
    letter_id uuid NOT NULL,
    tenant_id bigint NOT NULL,
    fence     bigint NOT NULL DEFAULT 0,
    done      boolean NOT NULL DEFAULT false,
    chunk     uuid,
    PRIMARY KEY (run_id, letter_id)
) WITH (fillfactor = 70);
COMMENT ON TABLE connector._retry IS 'The dead letters of a run of connector.dlq_retry: done and chunk change only in the transaction that lands the letter or refuses it again.';
ALTER TABLE connector._retry ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON connector._retry USING (tenant_id = (SELECT connector.current_tenant()));
