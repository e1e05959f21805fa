-- 30-cadence: a topic kept current by a schedule, inside a window of the day.
--
-- Every five minutes, by UTC, a run starts that reads on from the stored position. A slot outside the window is skipped,
-- not kept for later; one that meets a run still at work leaves a Cancelled row. A run that somebody asks for heeds neither.
--
-- Expect: run 1: status=Completed
-- Expect-sql: SELECT count(*) FROM connector.t_acme_partners_cadence => 2400
-- Expect-sql: SELECT schedule, "window" FROM connector.connectors WHERE name = 'acme-kafka-cadence' => */5 * * * *|06:00-22:00
-- Expect-sql: SELECT (next_run_at AT TIME ZONE 'UTC')::time BETWEEN '06:00' AND '21:55' AND extract(minute FROM next_run_at)::integer % 5 = 0 FROM connector.connectors WHERE name = 'acme-kafka-cadence' => t

INSERT INTO connector.manifest (name, scopes, spec) VALUES ('acme-kafka-cadence', '{billing}', '{
    "name": "acme_partners_cadence",
    "brokers": "127.0.0.1:29092",
    "topic": "acme.partners",
    "format": "json",
    "schedule": "*/5 * * * *",
    "window": "06:00-22:00"
}')
ON CONFLICT (name) DO UPDATE SET scopes = EXCLUDED.scopes, spec = EXCLUDED.spec;

CALL connector.catch_up('acme-kafka-cadence');

SELECT name, schedule, "window", status, last_run_at, next_run_at FROM connector.connectors ORDER BY name;
