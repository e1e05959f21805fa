-- Presets: a vendor's settings written in the vendor's own words, expanded into plain keys before a spec is stored.

CREATE OR REPLACE FUNCTION connector._presets()
RETURNS TABLE (preset text, input text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._presets()
--   The inputs that each preset requires, in the order in which a missing one is named.
    VALUES
        ('event-hubs', 'namespace'),
        ('event-hubs', 'connection_string_env'),
        ('confluent-cloud', 'bootstrap'),
        ('confluent-cloud', 'api_key_env'),
        ('confluent-cloud', 'api_secret_env'),
        ('msk-scram', 'bootstrap'),
        ('msk-scram', 'username_env'),
        ('msk-scram', 'password_env')
$fn$;
COMMENT ON FUNCTION connector._presets() IS 'The inputs of each preset.';
REVOKE ALL ON FUNCTION connector._presets() FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._expand_preset(spec jsonb)
RETURNS jsonb
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._expand_preset(spec)
--   The spec with its preset written out: brokers and auth come in, the preset's own keys go.
-- Returns: the spec unchanged where it names no known preset.
    SELECT CASE
        WHEN w.brokers IS NULL THEN _expand_preset.spec
        ELSE _expand_preset.spec - 'preset' - ARRAY(SELECT p.input FROM connector._presets() AS p WHERE p.preset = w.preset)
            || jsonb_build_object('brokers', w.brokers, 'auth', jsonb_build_object(
                'kind', w.kind, 'security_protocol', 'SASL_SSL', 'username_env', w.username_env, 'password_env', w.password_env))
    END
    FROM (SELECT _expand_preset.spec ->> 'preset' AS preset) AS p
    LEFT JOIN LATERAL (VALUES
        ('event-hubs', _expand_preset.spec ->> 'namespace' || '.servicebus.windows.net:9093', 'sasl-plain',
            'EVENT_HUBS_SASL_USERNAME', _expand_preset.spec ->> 'connection_string_env'),
        ('confluent-cloud', _expand_preset.spec ->> 'bootstrap', 'sasl-plain',
            _expand_preset.spec ->> 'api_key_env', _expand_preset.spec ->> 'api_secret_env'),
        ('msk-scram', _expand_preset.spec ->> 'bootstrap', 'sasl-scram-sha-512',
            _expand_preset.spec ->> 'username_env', _expand_preset.spec ->> 'password_env')
    ) AS w (preset, brokers, kind, username_env, password_env) ON w.preset = p.preset
$fn$;
COMMENT ON FUNCTION connector._expand_preset(jsonb) IS 'A spec with its preset written out as brokers and auth.';
REVOKE ALL ON FUNCTION connector._expand_preset(jsonb) FROM PUBLIC;

CREATE OR REPLACE FUNCTION connector._check_preset(spec jsonb)
RETURNS TABLE (severity text, path text, message text, hint text)
LANGUAGE sql
IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $fn$
-- connector._check_preset(spec)
--   What stands in the way of expanding a preset, and inputs that no preset of this spec reads. An unknown preset is a
--   finding of connector._check_known. A bad namespace is not shown: it may be the whole connection string, key and all.
    SELECT 'ERROR', 'spec.' || p.input, format('preset %s requires %s', p.preset, p.input),
        format('Give spec.%s, or leave spec.preset out and write brokers and auth yourself.', p.input)
    FROM connector._presets() AS p
    WHERE p.preset = connector._text_at(_check_preset.spec, 'preset') AND NOT _check_preset.spec ? p.input
    UNION ALL
    SELECT 'ERROR', 'spec.' || w.key, format('%s is written by preset %s', w.key, _check_preset.spec ->> 'preset'),
        format('Leave out spec.%s, or spec.preset.', w.key)
    FROM unnest('{brokers,brokers_env,auth}'::text[]) AS w (key)
    WHERE _check_preset.spec ? w.key
        AND connector._text_at(_check_preset.spec, 'preset') IN (SELECT p.preset FROM connector._presets() AS p)
    UNION ALL
    SELECT 'ERROR', 'spec.namespace', 'namespace must be a letter, then letters, digits and hyphens, at most 63',
        'Write the name of the Event Hubs namespace alone, without .servicebus.windows.net.'
    WHERE connector._text_at(_check_preset.spec, 'namespace') !~ '^[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$'
    UNION ALL
    SELECT 'ERROR', 'spec.bootstrap', 'bootstrap ' || f.message, f.hint
    FROM connector._broker_faults(connector._text_at(_check_preset.spec, 'bootstrap')) AS f
    UNION ALL
    SELECT 'WARN', 'spec.' || i.input, format('%s is read only with preset %s', i.input, i.presets),
        format('Remove it, or set spec.preset to %s.', i.presets)
    FROM (SELECT p.input, string_agg(p.preset, ' or ') AS presets, array_agg(p.preset) AS known
        FROM connector._presets() AS p GROUP BY p.input) AS i
    WHERE _check_preset.spec ? i.input
        AND (NOT _check_preset.spec ? 'preset'
            OR (connector._text_at(_check_preset.spec, 'preset') IN (SELECT p.preset FROM connector._presets() AS p)
                AND _check_preset.spec ->> 'preset' <> ALL (i.known)))
$fn$;
COMMENT ON FUNCTION connector._check_preset(jsonb) IS 'Findings about a preset and its inputs.';
REVOKE ALL ON FUNCTION connector._check_preset(jsonb) FROM PUBLIC;
