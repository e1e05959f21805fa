-- Who may read what, as a matrix. Functions carry their own GRANT beside them; nothing here is granted to PUBLIC.
-- highwater_operator declares, runs and repairs; highwater_reader looks. Row security shows each its own tenant's rows only.
-- The tables are granted because the views run with their caller's rights (security_invoker): read the views, not the tables.

COMMENT ON SCHEMA connector IS 'highwater: Kafka topics as PostgreSQL tables. Declare with INSERT INTO connector.manifest, run with SELECT connector.run(name), look at connector.connectors, connector.runs and connector.dlq.';
GRANT USAGE ON SCHEMA connector TO highwater_operator, highwater_reader;

GRANT SELECT ON connector._audit         TO highwater_operator, highwater_reader;
GRANT SELECT ON connector._cursor        TO highwater_operator, highwater_reader;
GRANT SELECT ON connector._dlq           TO highwater_operator, highwater_reader;
GRANT SELECT ON connector._column        TO highwater_operator, highwater_reader;
GRANT SELECT ON connector._endpoint      TO highwater_operator, highwater_reader;
GRANT SELECT ON connector._lag           TO highwater_operator, highwater_reader;
GRANT SELECT ON connector._log           TO highwater_operator, highwater_reader;
GRANT SELECT ON connector._run           TO highwater_operator, highwater_reader;
GRANT SELECT ON connector._run_partition TO highwater_operator, highwater_reader;
GRANT SELECT ON connector._schedule      TO highwater_operator, highwater_reader;
GRANT SELECT ON connector._sidecar       TO highwater_operator, highwater_reader;
GRANT SELECT ON connector.manifest       TO highwater_operator, highwater_reader;

GRANT SELECT ON connector.accounting       TO highwater_operator, highwater_reader;
GRANT SELECT ON connector.audit            TO highwater_operator, highwater_reader;
GRANT SELECT ON connector.catalog          TO highwater_operator, highwater_reader;
GRANT SELECT ON connector.connector_cursor TO highwater_operator, highwater_reader;
GRANT SELECT ON connector.connectors       TO highwater_operator, highwater_reader;
GRANT SELECT ON connector.dlq              TO highwater_operator, highwater_reader;
GRANT SELECT ON connector.lag              TO highwater_operator, highwater_reader;
GRANT SELECT ON connector.log              TO highwater_operator, highwater_reader;
GRANT SELECT ON connector.progress         TO highwater_operator, highwater_reader;
GRANT SELECT ON connector.run_partitions   TO highwater_operator, highwater_reader;
GRANT SELECT ON connector.runs             TO highwater_operator, highwater_reader;
GRANT SELECT ON connector.sidecars         TO highwater_operator, highwater_reader;
