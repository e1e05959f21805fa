-- Takes ids one by one, for a sequence that does not give a block.
-- $1 oid: sequence; $2 bigint: how many.
SELECT pg_catalog.array_agg(s.v ORDER BY s.v)
FROM (SELECT pg_catalog.nextval($1::oid::pg_catalog.regclass) AS v FROM pg_catalog.generate_series(1, $2::bigint)) AS s
