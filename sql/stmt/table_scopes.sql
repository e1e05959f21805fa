-- Grants a table that was just made to the roles of its connector's scopes.
-- $1 uuid: connector.
SELECT connector._grant_scopes($1)
