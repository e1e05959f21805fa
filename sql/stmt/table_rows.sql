-- About how many rows a table has, for judging what a rewrite would cost: statistics scaled to its present size, as the planner
-- does it; -1 where it was never analyzed.
-- $1 text: name of the relation in schema connector.
SELECT CASE
    WHEN c.reltuples >= 0 AND c.relpages > 0
    THEN (c.reltuples / c.relpages * (pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::bigint))::bigint
    ELSE -1
END
FROM pg_catalog.pg_class AS c
WHERE c.relnamespace = 'connector'::pg_catalog.regnamespace AND c.relname = $1
