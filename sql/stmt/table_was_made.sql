-- Whether a connector's table was ever made.
-- $1 uuid: connector.
SELECT e.table_made FROM connector._endpoint AS e WHERE e.connector_id = $1
