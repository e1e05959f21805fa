package worker

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"highwater/reader/plan"
	"highwater/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

func none(string) (string, bool) { return "", false }

func env(m map[string]string) func(string) (string, bool) {
	return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
}

// The defaults that the sidecar fills in are those that connector.describe() tells.
func TestDefaultsAreThoseOfDescribe(t *testing.T) {
	pool := harness.Pool(t, harness.Database(t))
	rows, err := pool.Query(t.Context(), "SELECT key, coalesce(default_value, '') FROM connector.describe()")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	var key, value string
	if _, err := pgx.ForEachRow(rows, []any{&key, &value}, func() error { told[key] = value; return nil }); err != nil {
		t.Fatal(err)
	}
	m, err := parseManifest(json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	for key, ours := range map[string]string{
		"format": m.Format, "poll_timeout_ms": number(m.PollTimeoutMS), "stall_timeout_ms": number(m.StallTimeoutMS), "chunk_bytes": number(m.ChunkBytes),
		"max_message_bytes": number(m.MaxMessageBytes), "poison_chunks": strconv.Itoa(m.PoisonChunks), "client_id": m.ClientID, "isolation": m.Isolation,
		"start_position": m.StartPosition, "read": m.Read, "on_lost": m.OnLost, "layout": m.Layout, "schema": m.Schema, "type_change": m.TypeChange,
		"dedup": m.Dedup, "write": m.Write,
	} {
		if told[key] != ours {
			t.Errorf("%s: describe says %q, the sidecar takes %q", key, told[key], ours)
		}
	}
}

func TestRowsOfAChunk(t *testing.T) {
	for spec, want := range map[string]int{
		`{}`: 0, `{"chunk_rows":"auto"}`: 0, `{"chunk_rows":700}`: 700, `{"max_poll_records":100}`: 100, `{"max_poll_records":5000}`: 500,
	} {
		m, err := parseManifest(json.RawMessage(spec))
		if err != nil || m.rows() != want {
			t.Errorf("%s: %d, %v, want %d", spec, m.rows(), err, want)
		}
	}
}

func TestAStoredSpecThatDoesNotDecodeEndsTheRun(t *testing.T) {
	_, err := parseManifest(json.RawMessage(`{"chunk_rows":"many"}`))
	if s, ok := asStop(err); !ok || s.end.Status != "Failed" || s.end.Code != "internal" || !strings.Contains(s.end.Message, "chunk_rows") {
		t.Fatalf("%v", err)
	}
}

func TestStartPosition(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]plan.Start{
		"earliest": {Kind: plan.Earliest}, "latest": {Kind: plan.Latest}, "2026-01-02T03:04:05Z": {Kind: plan.AtTime, At: at}, "2026-01-02T05:04:05+02:00": {Kind: plan.AtTime, At: at},
	} {
		got, err := manifest{StartPosition: text}.start()
		if err != nil || got.Kind != want.Kind || !got.At.Equal(want.At) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if _, err := (manifest{StartPosition: "soon"}).start(); err == nil {
		t.Error("soon is no position")
	}
}

func TestConnection(t *testing.T) {
	secrets := env(map[string]string{"BROKERS": " a:1, b:2 ,", "USER": `us"er\`, "PW": "p w", "BLANK": "  \n"})
	for _, c := range []struct {
		name, spec string
		brokers    int
		tls        bool
		user       string
		code, says string
	}{
		{"literal addresses", `{"brokers":"a:1, b:2"}`, 2, false, "", "", ""},
		{"addresses by name", `{"brokers_env":"BROKERS"}`, 2, false, "", "", ""},
		{"a name that resolves to nothing names both places", `{"brokers_env":"NOPE"}`, 0, false, "", "secret_missing", "'NOPE' (brokers_env)"},
		{"blanks count as nothing", `{"brokers_env":"BLANK"}`, 0, false, "", "secret_missing", "environment"},
		{"plain over TLS is the default", `{"brokers":"a:1","auth":{"kind":"sasl-plain","username_env":"USER","password_env":"PW"}}`, 1, true, `us"er\`, "", ""},
		{"plain without TLS", `{"brokers":"a:1","auth":{"kind":"sasl-plain","username_env":"USER","password_env":"PW","security_protocol":"SASL_PLAINTEXT"}}`, 1, false, `us"er\`, "", ""},
		{"a missing password", `{"brokers":"a:1","auth":{"kind":"sasl-plain","username_env":"USER","password_env":"NOPE"}}`, 0, false, "", "secret_missing", "auth.password_env"},
		{"kind none is no handshake", `{"brokers":"a:1","auth":{"kind":"none"}}`, 1, false, "", "", ""},
		{"TLS without SASL", `{"brokers":"a:1","tls":{"enabled":true}}`, 1, true, "", "", ""},
		{"a certificate authority that is none", `{"brokers":"a:1","tls":{"enabled":true,"ca_pem_env":"PW"}}`, 0, false, "", "tls_failed", "'PW' (tls.ca_pem_env)"},
		{"a pair that is none never quotes it", `{"brokers":"a:1","tls":{"enabled":true,"cert_pem_env":"USER","key_pem_env":"PW"}}`, 0, false, "", "tls_failed", "no matching"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := parseManifest(json.RawMessage(c.spec))
			if err != nil {
				t.Fatal(err)
			}
			o, err := m.connection(resolver{registry: none, environ: secrets})
			if c.code != "" {
				var s *stop
				if !errors.As(err, &s) || s.end.Code != c.code || !strings.Contains(s.end.Message, c.says) || strings.Contains(err.Error(), "p w") {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil || len(o.Brokers) != c.brokers || (o.TLS != nil) != c.tls || (o.SASL != nil) != (c.user != "") || o.SASL != nil && o.SASL.Username != c.user {
				t.Fatalf("%+v, %v", o, err)
			}
		})
	}
}

func TestTheRegistryComesBeforeTheEnvironment(t *testing.T) {
	r := resolver{registry: env(map[string]string{"A": "registry", "B": " "}), environ: env(map[string]string{"A": "environment", "B": "environment"})}
	for name, want := range map[string]string{"A": "registry", "B": "environment"} {
		if got, err := r.value("key", name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
