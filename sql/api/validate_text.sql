-- Small helpers of the validator: reading words out of jsonb without a cast that may fail, and showing them.

CREATE OR REPLACE FUNCTION connector._shown(word text)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._shown(word)
--   A name or value for a message: in quotes, without control characters (a finding is one line), at most 64 characters.
    SELECT '"' || regexp_replace(left(_shown.word, 64), '[\x01-\x1f\x7f-\x9f]', '?', 'g')
        || CASE WHEN length(_shown.word) > 64 THEN '…' ELSE '' END || '"'
$fn$;
COMMENT ON FUNCTION connector._shown(text) IS 'A word quoted for a message, on one line, cut to 64 characters.';
REVOKE ALL ON FUNCTION connector._shown(text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._shown_json(value jsonb)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._shown_json(value)
--   What a key holds, for a message: a short scalar as written, anything else by its kind.
    SELECT CASE jsonb_typeof(_shown_json.value)
        WHEN 'string' THEN connector._shown(_shown_json.value #>> '{}')
        WHEN 'number' THEN left(_shown_json.value #>> '{}', 40) || CASE WHEN length(_shown_json.value #>> '{}') > 40 THEN '…' ELSE '' END
        WHEN 'boolean' THEN _shown_json.value #>> '{}'
        WHEN 'array' THEN 'a list'
        WHEN 'object' THEN 'an object'
        ELSE 'null'
    END
$fn$;
COMMENT ON FUNCTION connector._shown_json(jsonb) IS 'A JSON value for a message, short and on one line.';
REVOKE ALL ON FUNCTION connector._shown_json(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._text_at(spec jsonb, path text)
RETURNS text
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._text_at(spec, path)
--   The string at a key (parent.key for a nested one), or NULL where there is none, it is blank, or it is no string:
--   those are findings of connector._check_known, and the rules that read the string have nothing to say about them.
    SELECT CASE WHEN jsonb_typeof(v.value) = 'string' AND btrim(v.value #>> '{}', E' \t\r\n') <> '' THEN v.value #>> '{}' END
    FROM (SELECT _text_at.spec #> string_to_array(_text_at.path, '.') AS value) AS v
$fn$;
COMMENT ON FUNCTION connector._text_at(jsonb, text) IS 'A non-blank string out of a spec, or NULL.';
REVOKE ALL ON FUNCTION connector._text_at(jsonb, text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._pairs(value jsonb)
RETURNS TABLE (key text, value jsonb)
LANGUAGE sql
IMMUTABLE
ROWS 10
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._pairs(value)
--   The keys and values of a JSON object; no row for anything else, where jsonb_each would fail.
    SELECT e.key, e.value
    FROM jsonb_each(CASE WHEN jsonb_typeof(_pairs.value) = 'object' THEN _pairs.value ELSE '{}' END) AS e
$fn$;
COMMENT ON FUNCTION connector._pairs(jsonb) IS 'The keys and values of a JSON object; none for any other value.';
REVOKE ALL ON FUNCTION connector._pairs(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._items(value jsonb)
RETURNS TABLE (ordinal bigint, value jsonb)
LANGUAGE sql
IMMUTABLE
ROWS 10
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._items(value)
--   The items of a JSON array, numbered from 1; no row for anything else.
    SELECT e.ordinality, e.value
    FROM jsonb_array_elements(CASE WHEN jsonb_typeof(_items.value) = 'array' THEN _items.value ELSE '[]' END) WITH ORDINALITY AS e
$fn$;
COMMENT ON FUNCTION connector._items(jsonb) IS 'The items of a JSON array, numbered; none for any other value.';
REVOKE ALL ON FUNCTION connector._items(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._edit_distance(word text, other text)
RETURNS integer
LANGUAGE plpgsql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._edit_distance(word, other)
--   How many letters must be put in, taken out or replaced to make one word of the other (Levenshtein), of their first
--   40 characters. Ours, because the extension that has it (fuzzystrmatch) is not installed everywhere.
DECLARE
    v_word  text[] := regexp_split_to_array(left(word, 40), '');
    v_other text[] := regexp_split_to_array(left(other, 40), '');
    v_above integer[];
    v_row   integer[];
BEGIN
    v_row := ARRAY(SELECT generate_series(0, cardinality(v_other)));
    FOR i IN 1..cardinality(v_word) LOOP
        v_above := v_row;
        v_row := ARRAY[i];
        FOR j IN 1..cardinality(v_other) LOOP
            v_row[j + 1] := least(
                v_row[j] + 1,
                v_above[j + 1] + 1,
                v_above[j] + (v_word[i] <> v_other[j])::integer);
        END LOOP;
    END LOOP;
    RETURN v_row[cardinality(v_other) + 1];
END
$fn$;
COMMENT ON FUNCTION connector._edit_distance(text, text) IS 'Levenshtein distance of two words.';
REVOKE ALL ON FUNCTION connector._edit_distance(text, text) FROM PUBLIC;
