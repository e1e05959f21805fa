package api_test

import (
	"strings"
	"testing"

	"highwater/tests/harness"
)

const document = `{"apiVersion": "connectors.highwater.io/v1", "kind": "Connector",
	"metadata": {"name": "acme", "connector_type": "kafka", "scopes": ["billing", "Ünïcode \"scope\""]}, "spec": ` + least + `}`

func TestApplyDeclaresAndChanges(t *testing.T) {
	s := connect(t, harness.Database(t))
	first := get[string](s, "SELECT concat_ws(' ', name, connector_id, endpoints_applied) FROM connector.apply($1)", document)
	if want := get[string](s, "SELECT 'acme ' || connector_id || ' 1' FROM connector.manifest"); first != want {
		t.Errorf("applied %q, want %q", first, want)
	}
	if got := get[[]string](s, "SELECT scopes FROM connector.manifest"); len(got) != 2 || got[1] != `Ünïcode "scope"` {
		t.Errorf("scopes %q", got)
	}
	again := get[string](s, "SELECT concat_ws(' ', name, connector_id, endpoints_applied) FROM connector.apply($1)", document)
	if again != first || version(s, "acme") != 1 {
		t.Errorf("applied again %q, configuration %d; want %q, 1", again, version(s, "acme"), first)
	}
	changed := strings.Replace(strings.Replace(document, "broker-1", "broker-2", 1), `"connector_type": "kafka", `, "", 1)
	s.must("SELECT connector.apply($1)", changed)
	if got := get[string](s, "SELECT connector.get('acme') ->> 'brokers'"); got != "broker-2:9092" || version(s, "acme") != 2 {
		t.Errorf("brokers %s, configuration %d", got, version(s, "acme"))
	}
	if w := s.warnings(); len(w) != 0 {
		t.Errorf("warnings %v", w)
	}
}

func TestApplyWarnsOnceOfEverything(t *testing.T) {
	s := connect(t, harness.Database(t))
	odd := strings.Replace(strings.Replace(document, `"kind"`, `"status": {}, "kind"`, 1), `"topic"`, `"poll_timeout": 1, "topic"`, 1)
	odd = strings.Replace(odd, `"metadata": {`, `"metadata": {"labels": {}, `, 1)
	for range 2 {
		s.warnings()
		s.must("SELECT connector.apply($1)", odd)
		var got []string
		for _, w := range s.warnings() {
			got = append(got, strings.SplitN(w.Message, ":", 2)[0])
		}
		if strings.Join(got, " ") != "status metadata.labels spec.poll_timeout" {
			t.Errorf("warnings %q", got)
		}
	}
}

func TestApplyRefusesWhatIsNoDocument(t *testing.T) {
	s := connect(t, harness.Database(t))
	for given, want := range map[string][]string{
		`{}`:                                     {"ERROR apiVersion", "ERROR kind", "ERROR metadata", "ERROR spec"},
		least:                                    {"ERROR apiVersion", "ERROR kind", "ERROR metadata"},
		`[]`:                                     {"ERROR document"},
		`null`:                                   {"ERROR document"},
		strings.Replace(document, "v1", "v2", 1): {"ERROR apiVersion"},
		strings.Replace(document, "Connector", "Connection", 1): {"ERROR kind"},
		strings.Replace(document, `"acme"`, `"ACME"`, 1):        {"ERROR metadata.name"},
		strings.Replace(document, `acme.partners`, `a/b`, 1):    {"ERROR spec.topic"},
	} {
		err := s.fails("22023", "SELECT connector.apply($1)", given)
		contains(t, "detail of "+given, err.Detail, want...)
	}
	s.fails("22023", "SELECT connector.apply(NULL)")
	if n := get[int](s, "SELECT count(*) FROM connector.manifest"); n != 0 {
		t.Errorf("%d connectors were stored", n)
	}
}

func TestDescribeAndValidateReadOneTable(t *testing.T) {
	s := connect(t, harness.Database(t))
	got := get[string](s, "SELECT concat_ws('|', required, type, importance, default_value, meaning) FROM connector.describe() WHERE key = 'poll_timeout_ms'")
	contains(t, "poll_timeout_ms", got, "f|LONG|LOW|2000|", "; 100 to 60000")
	got = get[string](s, "SELECT meaning FROM connector.describe('kafka') WHERE key = 'auth.kind'")
	contains(t, "auth.kind", got, "; one of none, sasl-plain, sasl-scram-sha-256, sasl-scram-sha-512")
	if got := get[string](s, "SELECT string_agg(key, ' ') FROM connector.describe() WHERE required"); got != "name topic" {
		t.Errorf("required: %s", got)
	}
	if n := get[int](s, "SELECT count(*) FROM connector.describe() WHERE meaning = '' OR importance NOT IN ('HIGH', 'MEDIUM', 'LOW') OR type NOT IN ('STRING', 'LONG', 'BOOLEAN', 'NESTED', 'LIST', 'MAP')"); n != 0 {
		t.Errorf("%d keys are not described", n)
	}
	// Every default is a value that its own rule takes.
	for _, row := range []string{"STRING", "LONG", "BOOLEAN", "LIST", "MAP"} {
		n := get[int](s, `SELECT count(*) FROM connector._spec_keys() AS k WHERE k.type = $1 AND k.default_value IS NOT NULL AND connector._type_fault(k.type,
			CASE WHEN k.type = 'STRING' OR k.default_value = 'auto' THEN to_jsonb(k.default_value) ELSE k.default_value::jsonb END, k.min_value, k.max_value, k.allowed) IS NOT NULL`, row)
		if n != 0 {
			t.Errorf("%d defaults of type %s are not valid", n, row)
		}
	}
	// A key that is described is known to the sweep.
	if n := get[int](s, `SELECT count(*) FROM connector.describe() AS d, connector.validate(
		CASE WHEN d.key LIKE '%.%' THEN jsonb_build_object(split_part(d.key, '.', 1), jsonb_build_object(split_part(d.key, '.', 2), 1)) ELSE jsonb_build_object(d.key, 1) END) AS f
		WHERE f.message LIKE 'unknown key%'`); n != 0 {
		t.Errorf("%d described keys are unknown to the validator", n)
	}
	for _, kind := range []string{"'jdbc'", "NULL", "''"} {
		if err := s.fails("22023", "SELECT * FROM connector.describe("+kind+")"); err.Hint == "" {
			t.Errorf("describe(%s): no hint", kind)
		}
	}
}

// An operator is told what is wrong with a document, as the owner is.
func TestAnOperatorSeesTheFindingsOfApply(t *testing.T) {
	s, _ := stage(t)
	op := as(t, s.Config().ConnString(), newRole(t, s, "highwater_operator"))
	for _, document := range []string{`{}`, `{"kind": "Other", "spec": {}}`} {
		op.fails("22023", "SELECT connector.apply($1::jsonb)", document)
	}
}
