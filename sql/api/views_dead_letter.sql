-- Dead letters as operators see them. A view only ever gains columns at its end.

CREATE OR REPLACE VIEW connector.dlq WITH (security_invoker = on) AS
SELECT d.id,
    d.connector,
    d.run_id,
    d.reason,
    d.attempts,
    d.message,
    d.payload,
    d.status,
    d.topic,
    d.partition,
    d."offset",
    d.key,
    d.created_at,
    d.sqlstate,
    d.raw,
    d.headers
FROM connector._dlq AS d;
COMMENT ON VIEW connector.dlq IS 'Dead letters: messages that could not be landed, with where they are, why, and their bytes. connector.dlq_discard and connector.dlq_replayed close them.';
COMMENT ON COLUMN connector.dlq.id IS 'What connector.dlq_discard and connector.dlq_replayed take.';
COMMENT ON COLUMN connector.dlq.connector IS 'Name of the connector.';
COMMENT ON COLUMN connector.dlq.run_id IS 'The run that met it last.';
COMMENT ON COLUMN connector.dlq.reason IS 'MalformedSource, TypeConflict, TooLarge or Refused.';
COMMENT ON COLUMN connector.dlq.attempts IS 'How often it was met; a message met again after a reset stays one row.';
COMMENT ON COLUMN connector.dlq.message IS 'topic:partition:offset:line and why.';
COMMENT ON COLUMN connector.dlq.payload IS '{"raw":[...],"file":"topic:partition:offset","line":offset}; raw is capped at 8,192 characters.';
COMMENT ON COLUMN connector.dlq.status IS 'open, discarded or replayed.';
COMMENT ON COLUMN connector.dlq.topic IS 'The topic that holds the message.';
COMMENT ON COLUMN connector.dlq.partition IS 'The partition that holds it.';
COMMENT ON COLUMN connector.dlq."offset" IS 'The message''s own offset.';
COMMENT ON COLUMN connector.dlq.key IS 'The message''s key; where it is no text, base64: followed by its bytes in that form. Null where it has none.';
COMMENT ON COLUMN connector.dlq.created_at IS 'When it was first met.';
COMMENT ON COLUMN connector.dlq.sqlstate IS 'Only for Refused: what the database said.';
COMMENT ON COLUMN connector.dlq.raw IS 'The whole value byte for byte; null above 1 MiB.';
COMMENT ON COLUMN connector.dlq.headers IS 'Message headers: an ordered array of [name, value] pairs.';
