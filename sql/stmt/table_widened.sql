-- Notes the new type of a column in the column history; a column that someone made by hand has no line there and gets none.
-- $1 uuid: connector; $2 text: column; $3 text: type.
UPDATE connector._column AS h
SET data_type = $3
WHERE h.connector_id = $1 AND h.column_name = $2
