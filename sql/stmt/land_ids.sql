-- Takes ids for a chunk's rows in one go; they are a block only where last - first + 1 equals the number asked for.
-- $1 oid: sequence; $2 bigint: how many.
SELECT pg_catalog.min(s.v), pg_catalog.max(s.v)
FROM (SELECT pg_catalog.nextval($1::oid::pg_catalog.regclass) AS v FROM pg_catalog.generate_series(1, $2::bigint)) AS s
