-- A chunk's own settings, for this transaction only: whatever the role or the database says must not end it early, change how a
-- text is read, or let it hold its locks while nobody works on it. Values are in milliseconds.
-- $1 text: lock_timeout; $2 text: statement_timeout; $3 text: idle_in_transaction_session_timeout.
SELECT
    pg_catalog.set_config('lock_timeout', $1, true),
    pg_catalog.set_config('statement_timeout', $2, true),
    pg_catalog.set_config('idle_in_transaction_session_timeout', $3, true),
    CASE WHEN pg_catalog.current_setting('server_version_num')::integer >= 170000
        THEN pg_catalog.set_config('transaction_timeout', '0', true) END,
    pg_catalog.set_config('search_path', 'pg_catalog', true),
    pg_catalog.set_config('row_security', 'on', true),
    pg_catalog.set_config('client_min_messages', 'error', true),
    pg_catalog.set_config('TimeZone', 'UTC', true),
    pg_catalog.set_config('DateStyle', 'ISO, MDY', true),
    pg_catalog.set_config('IntervalStyle', 'postgres', true)
