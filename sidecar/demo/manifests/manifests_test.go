package manifests

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"highwater/sidecar/demo/broker"
)

func TestTheFifteenFilesAreThere(t *testing.T) {
	want := map[string]string{
		"10-quickstart.sql":     "acme-kafka-partners",
		"20-event-hubs.sql":     "event-hubs-telemetry",
		"20-six-partitions.sql": "acme-kafka-orders",
		"30-cadence.sql":        "acme-kafka-cadence",
		"40-poison.sql":         "acme-kafka-poison",
		"45-compacted.sql":      "acme-kafka-compacted",
		"50-drift.sql":          "acme-kafka-drift",
		"55-raw.sql":            "acme-kafka-raw",
		"58-reserved.sql":       "acme-kafka-reserved",
		"60-absent.sql":         "acme-kafka-absent",
		"62-brokers-env.sql":    "acme-kafka-brokers-env",
		"65-sasl.sql":           "acme-kafka-sasl",
		"70-trimmed.sql":        "acme-kafka-trimmed",
		"75-live.sql":           "acme-kafka-live",
		"90-refused.sql":        "acme-kafka-refused",
	}
	if len(All()) != len(want) {
		t.Errorf("%d files, want %d", len(All()), len(want))
	}
	for _, m := range All() {
		if m.Err != nil || want[m.File] != m.Name {
			t.Errorf("%s declares %s, %v, want %s", m.File, m.Name, m.Err, want[m.File])
		}
	}
}

var specOf = regexp.MustCompile(`(?s)VALUES \('[^']+', '\{[a-z,]+\}', '(\{.*\n\})'\)\nON CONFLICT`)

func TestEverySpecIsJSONAndNamesTheDemosBroker(t *testing.T) {
	for _, m := range All() {
		found := specOf.FindStringSubmatch(m.SQL)
		if found == nil {
			t.Errorf("%s: no spec found", m.File)
			continue
		}
		var spec map[string]any
		if err := json.Unmarshal([]byte(found[1]), &spec); err != nil {
			t.Errorf("%s: %v", m.File, err)
		}
		if at, ok := spec["brokers"]; ok && at != broker.DefaultAddr {
			t.Errorf("%s names brokers %v, want %s", m.File, at, broker.DefaultAddr)
		}
	}
}

func TestEveryRunThatIsExpectedIsAskedFor(t *testing.T) {
	for _, m := range All() {
		asked := 0
		for _, s := range m.Steps {
			if strings.HasPrefix(s.Statement, "CALL connector.catch_up('"+m.Name+"')") {
				asked++
			}
		}
		expected := 0
		for _, e := range m.Expect {
			expected = max(expected, e.Run)
		}
		if asked != expected {
			t.Errorf("%s asks for %d runs and expects %d", m.File, asked, expected)
		}
	}
}

const declaration = "INSERT INTO connector.manifest (name, scopes, spec) VALUES ('x', '{a}', '{}');\n"

func TestParse(t *testing.T) {
	m, err := Parse("x.sql", strings.Join([]string{
		"-- In words: nothing to see.",
		"--",
		"-- Expect: run 2: status=Partial message~5000..5499",
		"-- Expect-sql: SELECT 'a => b' => 1|x",
		"-- Expect-error: 22023: ERROR spec.name, WARN spec.x",
		"-- Expect-no-topic: acme.absent",
		"", strings.TrimSpace(declaration), "",
		"-- Gesture: environment ACME_X=127.0.0.1:29092",
		`\prompt 'wait' done`,
		`\! highwater feed --topic t --rate 5 --seconds 2 &`,
		`\! sleep 2`,
		`\! highwater trim --topic t --before 7`,
		"SELECT 1,", "  2;",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Steps) != 6 || m.Steps[0].Statement+";\n" != declaration || m.Steps[5].Statement != "SELECT 1,\n  2" {
		t.Errorf("steps %+v", m.Steps)
	}
	if e := m.Steps[1].Environment; e == nil || *e != (Variable{"ACME_X", "127.0.0.1:29092"}) {
		t.Errorf("environment %+v", e)
	}
	if s := m.Steps[2]; s.Feed == nil || !s.Background || s.Feed.Rate != 5 || s.Feed.Topic != "t" {
		t.Errorf("feed %+v", s)
	}
	if m.Steps[3].Sleep != 2 || m.Steps[4].Trim == nil || m.Steps[4].Trim.Before != 7 {
		t.Errorf("sleep and trim %+v", m.Steps[3:5])
	}
	run, query, refusal := m.Expect[0], m.Expect[1], m.Expect[2]
	if run.Run != 2 || len(run.Tests) != 2 || run.Tests[0] != (Test{"status", false, "Partial"}) || run.Tests[1] != (Test{"message", true, "5000..5499"}) {
		t.Errorf("run %+v", run)
	}
	if query.SQL != "SELECT 'a => b'" || query.Want != "1|x" {
		t.Errorf("query %+v", query)
	}
	if refusal.Want != "22023" || len(refusal.Named) != 2 || refusal.Named[1] != "WARN spec.x" || m.Expect[3].Want != "acme.absent" {
		t.Errorf("refusal %+v, topic %+v", refusal, m.Expect[3])
	}
}

func TestParseRefusals(t *testing.T) {
	expect := "-- Expect-sql: SELECT 1 => 1\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing declared", expect, "declares no connector"},
		{"nothing expected", declaration, "expects nothing"},
		{"a kind that does not exist", declaration + "-- Expect-nothing: x", "no known kind"},
		{"a run without number", declaration + "-- Expect: status=Completed", "no run is named"},
		{"a word that tests nothing", declaration + "-- Expect: run 1: Completed", "neither column=text"},
		{"an answer that is missing", declaration + "-- Expect-sql: SELECT 1", "no answer"},
		{"an error without SQLSTATE", declaration + "-- Expect-error: spec.name", "no SQLSTATE"},
		{"an unknown gesture", declaration + "-- Gesture: wave", "no such gesture"},
		{"an unknown command", declaration + expect + `\! rm x`, "no such command"},
		{"a feed with a wrong flag", declaration + expect + `\! highwater feed --fast`, "-fast"},
		{"a pause without end", declaration + expect + `\! sleep 3600`, "up to 60 seconds"},
		{"a statement without end", declaration + expect + "SELECT 1", "no semicolon"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Parse("x.sql", c.text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
