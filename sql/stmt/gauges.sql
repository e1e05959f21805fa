-- What the metrics endpoint shows, a row a connector.
SELECT c.name, COALESCE(c.lag, 0), c.open_dead_letters FROM connector.connectors AS c ORDER BY c.name
