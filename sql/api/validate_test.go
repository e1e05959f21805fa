package api_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"highwater/tests/harness"
)

// finding is one row of connector.validate.
type finding struct{ Severity, Path, Message, Hint string }

func (f finding) line() string { return f.Severity + " " + f.Path }

func validate(s *session, document string) []finding {
	s.tb.Helper()
	rows, err := s.Query(s.tb.Context(), "SELECT severity, path, message, hint FROM connector.validate($1)", document)
	if err != nil {
		s.tb.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[finding])
	if err != nil {
		s.tb.Fatal(err)
	}
	return found
}

func lines(found []finding) string {
	var out []string
	for _, f := range found {
		out = append(out, f.line())
	}
	return strings.Join(out, "; ")
}

// rule is one case of the validator: what differs from the least spec, and which findings that makes, in order.
type rule struct{ spec, want string }

// checkRules judges each rule by connector.validate and by INSERT, which must agree: in what they refuse, in what they say,
// and in the warnings of what is stored.
func checkRules(t *testing.T, rules map[string]rule) {
	t.Helper()
	s := connect(t, harness.Database(t))
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			// A value of "absent" takes a key out of the least spec.
			spec := get[string](s, `SELECT (SELECT jsonb_object_agg(key, value) FROM jsonb_each($1::jsonb || $2::jsonb) WHERE value <> '"absent"')::text`, least, r.spec)
			found := validate(s, spec)
			if got := lines(found); got != r.want {
				t.Errorf("validate(%s) finds %q, want %q\n%v", spec, got, r.want, found)
			}
			insertAgrees(t, s, spec, found)
		})
	}
}

func insertAgrees(t *testing.T, s *session, spec string, found []finding) {
	t.Helper()
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	s.warnings()
	_, err = tx.Exec(t.Context(), "INSERT INTO connector.manifest (name, scopes, spec) VALUES ('c', '{a}', $1)", spec)
	var want, warned []string
	for _, f := range found {
		if f.Hint == "" || strings.ContainsAny(f.Message, "\n\r") {
			t.Errorf("finding without a hint or not one line: %+v", f)
		}
		want = append(want, f.Severity+" "+f.Path+": "+f.Message)
	}
	if len(found) > 0 && found[0].Severity == "ERROR" {
		pg := pgError(t, err)
		if pg.Code != "22023" || pg.Detail != strings.Join(want, "\n") {
			t.Errorf("INSERT says %s %q, validate %q", pg.Code, pg.Detail, want)
		}
		return
	}
	if err != nil {
		t.Fatalf("INSERT refuses what validate does not: %v", err)
	}
	for _, w := range s.warnings() {
		warned = append(warned, "WARN "+w.Message)
	}
	if strings.Join(warned, "\n") != strings.Join(want, "\n") {
		t.Errorf("INSERT warns %q, validate %q", warned, want)
	}
}

func TestTheRefusedManifestOfTheManual(t *testing.T) {
	s := connect(t, harness.Database(t))
	found := validate(s, `{"apiVersion": "connectors.highwater.io/v1", "kind": "Connector",
		"metadata": {"name": "acme-kafka-refused", "connector_type": "kafka", "scopes": ["billing"]},
		"spec": {"name": "9acme", "brokers": "host.docker.internal:29092", "topic": "acme/partners", "format": "avro",
			"poll_timeout": 50, "max_poll_records": 0, "auth": {"kind": "oauth"}}}`)
	want := "ERROR spec.name; ERROR spec.topic; ERROR spec.format; ERROR spec.max_poll_records; ERROR spec.auth.kind; WARN spec.poll_timeout"
	if got := lines(found); got != want {
		t.Fatalf("found %q, want %q", got, want)
	}
	contains(t, "hint", found[5].Hint, "poll_timeout_ms")
	contains(t, "message", found[2].Message, "json", "raw")
	contains(t, "message", found[4].Message, "none", "sasl-plain", "sasl-scram-sha-256", "sasl-scram-sha-512")
}

func TestValidateTakesAnythingWithoutFailing(t *testing.T) {
	s := connect(t, harness.Database(t))
	whole := `{"apiVersion": "connectors.highwater.io/v1", "kind": "Connector", "metadata": {"name": "c", "scopes": ["a"]}, "spec": ` + least + `}`
	for document, want := range map[string]string{
		`null`:           "ERROR document",
		`[]`:             "ERROR document",
		`"x"`:            "ERROR document",
		`1e400`:          "ERROR document",
		`{}`:             "ERROR spec.name; ERROR spec.brokers; ERROR spec.topic",
		least:            "",
		whole:            "",
		`{"spec": null}`: "ERROR apiVersion; ERROR kind; ERROR metadata; ERROR spec",
		`{"metadata": [], "spec": [], "kind": 1, "apiVersion": {}}`:                        "ERROR apiVersion; ERROR kind; ERROR metadata; ERROR spec",
		strings.Replace(whole, `"scopes": ["a"]`, `"scopes": []`, 1):                       "WARN metadata.scopes",
		strings.Replace(whole, `, "scopes": ["a"]`, ``, 1):                                 "WARN metadata.scopes",
		strings.Replace(whole, `["a"]`, `["a", 1, "", null, []]`, 1):                       "ERROR metadata.scopes; ERROR metadata.scopes; ERROR metadata.scopes; ERROR metadata.scopes",
		strings.Replace(whole, `["a"]`, `"a"`, 1):                                          "ERROR metadata.scopes",
		strings.Replace(whole, `"name": "c"`, `"nome": "c"`, 1):                            "ERROR metadata.name; WARN metadata.nome",
		strings.Replace(whole, `"name": "c"`, `"name": "c", "connector_type": "jdbc"`, 1):  "ERROR metadata.connector_type",
		strings.Replace(whole, `"name": "c"`, `"name": null`, 1):                           "ERROR metadata.name",
		strings.Replace(whole, `"name": "c"`, `"name": 7`, 1):                              "ERROR metadata.name",
		strings.Replace(whole, `"name": "c"`, `"name": "-c"`, 1):                           "ERROR metadata.name",
		strings.Replace(whole, `"name": "c"`, `"name": "C"`, 1):                            "ERROR metadata.name",
		strings.Replace(whole, `"name": "c"`, `"name": "c\n"`, 1):                          "ERROR metadata.name",
		strings.Replace(whole, `"name": "c"`, `"name": "`+strings.Repeat("c", 129)+`"`, 1): "ERROR metadata.name",
		strings.Replace(whole, `"name": "c"`, `"name": "`+strings.Repeat("c", 128)+`"`, 1): "",
		strings.Replace(whole, `highwater.io/v1`, `highwater.io/v2`, 1):                    "ERROR apiVersion",
		strings.Replace(whole, `"kind": "Connector"`, `"status": 1`, 1):                    "ERROR kind; WARN status",
		strings.Replace(whole, `{"name": "partners", `, `{"name": "9", "nam": 1, `, 1):     "ERROR spec.name; WARN spec.nam",
	} {
		t.Run(document, func(t *testing.T) {
			if found := validate(s, document); lines(found) != want {
				t.Errorf("found %q, want %q", lines(found), want)
			}
		})
	}
	if n := get[int](s, "SELECT count(*) FROM connector.validate(NULL)"); n != 1 {
		t.Errorf("%d findings on NULL, want 1", n)
	}
}

func TestUnknownKeysGetTheNearestKnownOneAsTheirHint(t *testing.T) {
	s := connect(t, harness.Database(t))
	for spec, want := range map[string]string{
		`{"poll_timeout": 50}`:               "poll_timeout_ms",
		`{"toppic": "x"}`:                    "topic",
		`{"Topic": "x"}`:                     "topic",
		`{"max_poll_record": 1}`:             "max_poll_records",
		`{"security_protocol": "x"}`:         "auth.security_protocol",
		`{"auth": {"usernameenv": "x"}}`:     "auth.username_env",
		`{"auth": {"security_protokol": 1}}`: "auth.security_protocol",
		`{"tls": {"ca_pem": "x"}}`:           "tls.ca_pem_env",
		`{"filter": {"header": {}}}`:         "filter.headers",
		`{"auth.kind": "none"}`:              "describe",
		`{"mapping": {}}`:                    "describe",
		`{"key": ["id"]}`:                    "describe", // a later version's
		`{"": 1}`:                            "describe",
	} {
		t.Run(spec, func(t *testing.T) {
			found := validate(s, get[string](s, "SELECT ($1::jsonb || $2::jsonb)::text", least, spec))
			if len(found) != 1 || found[0].Severity != "WARN" {
				t.Fatalf("found %v, want one warning", found)
			}
			contains(t, "hint", found[0].Hint, want)
		})
	}
}

func TestAHugeDocumentIsJudgedInTime(t *testing.T) {
	s := connect(t, harness.Database(t))
	s.must("SET statement_timeout = '10s'")
	spec := "SELECT jsonb_object_agg('unknown_key_' || i, i) || $1::jsonb FROM generate_series(1, 20000) AS i"
	if n := get[int](s, "SELECT count(*) FROM connector.validate(("+spec+"))", least); n != 20000 {
		t.Errorf("%d findings, want one for each unknown key", n)
	}
	err := s.fails("22023", "INSERT INTO connector.manifest (name, spec) SELECT 'c', ("+spec+") || '{\"name\": 1}'", least)
	if strings.Count(err.Detail, "\n") > 100 {
		t.Errorf("the refusal has %d lines", strings.Count(err.Detail, "\n"))
	}
	contains(t, "message", err.Message, "1 error", "20001 warnings")
}

// Whatever a key holds, validate answers, and INSERT refuses with findings or stores: no cast fails in between.
func TestNoValueOfAnyKeyBreaksTheValidator(t *testing.T) {
	s := connect(t, harness.Database(t))
	s.must(`CREATE TEMP TABLE odd AS
		SELECT k.key, v.value, CASE WHEN k.key LIKE '%.%'
			THEN jsonb_build_object(split_part(k.key, '.', 1), jsonb_build_object(split_part(k.key, '.', 2), v.value))
			ELSE jsonb_build_object(k.key, v.value) END AS patch
		FROM connector.describe() AS k
		CROSS JOIN unnest(ARRAY['null', 'true', '-1.5e400', '""', '"\\\n\"é€"', '["a", null, {"b": []}]', '{"": {"a": [1]}, "a": "b"}']::jsonb[]) AS v (value)`)
	if n := get[int](s, "SELECT count(*) FROM odd CROSS JOIN LATERAL connector.validate($1::jsonb || odd.patch) AS f WHERE f.message IS NULL OR f.hint IS NULL OR f.path IS NULL", least); n != 0 {
		t.Errorf("%d findings say nothing", n)
	}
	s.must("SET client_min_messages = error")
	s.must(`DO $$
		DECLARE
			v_odd record;
			v_refused boolean;
		BEGIN
			FOR v_odd IN SELECT o.*, '` + least + `'::jsonb || o.patch AS spec FROM odd AS o LOOP
				BEGIN
					v_refused := true;
					INSERT INTO connector.manifest (name, scopes, spec) VALUES ('c', '{a}', v_odd.spec);
					v_refused := false;
					DELETE FROM connector.manifest;
				EXCEPTION WHEN invalid_parameter_value THEN
					NULL;
				END;
				IF v_refused <> EXISTS (SELECT FROM connector.validate(v_odd.spec) AS f WHERE f.severity = 'ERROR') THEN
					RAISE EXCEPTION 'validate and INSERT disagree on %', v_odd.patch;
				END IF;
			END LOOP;
		END
		$$`)
}
