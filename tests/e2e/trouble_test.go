package e2e

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"highwater/tests/harness"
)

// reachMost is how long a run may wait in all for a broker (spec 3.3).
const reachMost = 45 * time.Second

// Nobody listens, or the name is none: the run fails soon, may be tried again, and names address and topic.
func TestABrokerThatIsNotThere(t *testing.T) {
	t.Parallel()
	for name, addr := range map[string]string{"refused": freeAddr(t), "no such name": "broker.invalid:9092", "one of two": ""} {
		t.Run(name, func(t *testing.T) {
			f := onFake(t)
			topic := f.topic("there", 1, nil)
			f.produce(topic, 0, partners(0, 5)...)
			f.sidecar(nil)
			if addr == "" { // the other one answers, so nothing is amiss
				f.brokers = freeAddr(t) + "," + f.brokers
				f.declare("there", topic, "")
				f.completed("there", 5, 5)
				f.brokers = strings.Split(f.brokers, ",")[1]
				return
			}
			good := f.brokers
			f.brokers = addr
			f.declare("there", topic, "")
			f.brokers = good
			begun := time.Now()
			e := f.run("there")
			took := time.Since(begun)
			f.ends(e, "Failed", "broker_unreachable", addr, topic)
			f.want("true", "SELECT retryable FROM connector.runs WHERE run_id = $1", e.RunID)
			t.Logf("%s: told after %s: %s", name, took.Round(time.Millisecond), e.Message)
			if took > reachMost {
				t.Errorf("the run took %s", took)
			}
		})
	}
}

// weighty makes a connector on a topic of 20 MB, which is more than a run reads ahead, so that it needs its broker to the end.
func (f *fixture) weighty(name string) {
	f.Helper()
	topic := f.topic(name, 1, nil)
	for i := range 4 {
		f.produce(topic, 0, padded(500*i, 500)...)
	}
	f.declare(name, topic, `,"chunk_rows":50`)
}

// A real broker dies in the middle of a run. Back soon, the same run goes on; back too late, the run fails, keeps what it has,
// and the next one goes on from there. Either way each message is there once.
func TestTheBrokerDiesMidRun(t *testing.T) {
	t.Parallel()
	broker := harness.StartKafka(t, harness.KafkaOptions{})
	f := newFixture(t, broker.Addr())
	steps := &relay{}
	f.sidecar(steps.pass)
	f.weighty("soon")
	f.weighty("late")

	g := steps.gate("begin", 4)
	runID := f.held("soon", g)
	broker.Kill()
	g.open()
	f.chunks(runID, 5)
	if err := broker.Restart(); err != nil {
		t.Fatal(err)
	}
	if e := f.wait(runID); e.Status != "Completed" || e.RecordsIn != 2000 || e.RecordsOut != 2000 || e.Duplicates != 0 {
		t.Errorf("the broker came back: %+v", e)
	}
	f.want("2000 2000", "SELECT concat_ws(' ', count(*), count(DISTINCT partner_id)) FROM connector.t_soon")

	g = steps.gate("begin", 4)
	runID = f.held("late", g)
	broker.Kill()
	g.open()
	begun := time.Now()
	e := f.wait(runID)
	t.Logf("a broker that stayed away was told after %s: %s", time.Since(begun).Round(time.Millisecond), e.Message)
	f.ends(e, "Failed", "broker_lost", broker.Addr())
	f.want("true", "SELECT retryable FROM connector.runs WHERE run_id = $1", runID)
	if took := time.Since(begun); took > reachMost {
		t.Errorf("the run took %s to give up", took)
	}
	if e.Chunks < 4 || e.RecordsIn >= 2000 {
		t.Errorf("the run kept %+v", e)
	}
	f.exactlyBelow("late")
	begun = time.Now()
	f.ends(f.run("late"), "Failed", "broker_unreachable", broker.Addr())
	t.Logf("a broker that is away was told after %s", time.Since(begun).Round(time.Millisecond))
	if err := broker.Restart(); err != nil {
		t.Fatal(err)
	}
	f.completed("late", 2000-e.RecordsIn, 2000-e.RecordsIn)
	f.want("2000 2000", "SELECT concat_ws(' ', count(*), count(DISTINCT partner_id)) FROM connector.t_late")
}

// exactlyBelow compares a table's rows with its connector's positions.
func (f *fixture) exactlyBelow(name string) {
	f.Helper()
	f.want("true", fmt.Sprintf(`SELECT count(*) = count(DISTINCT _source) AND count(*) = (SELECT (cursor->'offsets'->>'0')::bigint FROM connector.connector_cursor WHERE connector = '%s')
		AND max(split_part(_source, ':', 4)::bigint) = count(*) - 1 FROM connector.t_%s`, name, name))
}

// Every way in that a real broker has: with the right key it opens, with a wrong one the run says at once what to check, and
// never what the key was.
func TestSecureBrokers(t *testing.T) {
	t.Parallel()
	broker := harness.StartKafka(t, harness.KafkaOptions{SASL: true, TLS: true})
	f := newFixture(t, broker.Addr())
	topic := f.topic("secure", 1, nil)
	f.produce(topic, 0, partners(0, 5)...)
	certificate, key := broker.Certificate()
	stranger := httptest.NewTLSServer(nil)
	defer stranger.Close()
	other := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: stranger.Certificate().Raw})
	env := &environ{values: map[string]string{
		"USER": harness.KafkaUser, "PASSWORD": harness.KafkaPassword, "WRONG": "wr0ngpassword", "BLANK": "  ", "CA": string(certificate), "OTHER_CA": string(other),
		"KEY": string(key), "NO_PEM": "nothing",
	}}
	f.lookup = env.lookup
	f.sidecar(nil)
	sasl := func(kind, protocol, password string) string {
		return fmt.Sprintf(`,"auth":{"kind":%q,"security_protocol":%q,"username_env":"USER","password_env":%q}`, kind, protocol, password)
	}
	ca := `,"tls":{"ca_pem_env":"CA"}`
	for i, c := range []struct {
		name, protocol, extra string
		code                  string
		says                  []string
	}{
		{"plain", "SASL_PLAINTEXT", sasl("sasl-plain", "SASL_PLAINTEXT", "PASSWORD"), "ok", nil},
		{"scram 256", "SASL_PLAINTEXT", sasl("sasl-scram-sha-256", "SASL_PLAINTEXT", "PASSWORD"), "ok", nil},
		{"scram 512 in tls", "SASL_SSL", sasl("sasl-scram-sha-512", "SASL_SSL", "PASSWORD") + ca, "ok", nil},
		{"plain in tls", "SASL_SSL", sasl("sasl-plain", "SASL_SSL", "PASSWORD") + ca, "ok", nil},
		{"tls alone", "SSL", `,"tls":{"enabled":true,"ca_pem_env":"CA"}`, "ok", nil},
		{"tls with a certificate of ours", "SSL", `,"tls":{"enabled":true,"ca_pem_env":"CA","cert_pem_env":"CA","key_pem_env":"KEY"}`, "ok", nil},
		{"plain, wrong password", "SASL_PLAINTEXT", sasl("sasl-plain", "SASL_PLAINTEXT", "WRONG"), "auth_failed", []string{"PLAIN"}},
		{"scram 512, wrong password", "SASL_PLAINTEXT", sasl("sasl-scram-sha-512", "SASL_PLAINTEXT", "WRONG"), "auth_failed", []string{"SCRAM-SHA-512"}},
		{"plain in tls, wrong password", "SASL_SSL", sasl("sasl-plain", "SASL_SSL", "WRONG") + ca, "auth_failed", []string{"PLAIN"}},
		{"no password", "SASL_PLAINTEXT", "", "auth_failed", []string{"closed the connection"}},
		{"sasl where there is none", "PLAINTEXT", sasl("sasl-plain", "SASL_PLAINTEXT", "PASSWORD"), "auth_failed", []string{"PLAIN"}},
		{"an absent password", "SASL_PLAINTEXT", sasl("sasl-plain", "SASL_PLAINTEXT", "ABSENT"), "secret_missing", []string{"ABSENT", "auth.password_env", "registry", "environment"}},
		{"a blank password", "SASL_PLAINTEXT", sasl("sasl-plain", "SASL_PLAINTEXT", "BLANK"), "secret_missing", []string{"BLANK", "blank"}},
		{"an unknown authority", "SSL", `,"tls":{"enabled":true}`, "tls_failed", []string{"certificate", "verify"}},
		{"another authority", "SSL", `,"tls":{"enabled":true,"ca_pem_env":"OTHER_CA"}`, "tls_failed", []string{"certificate", "verify"}},
		{"another name", "SSL", `,"tls":{"enabled":true,"ca_pem_env":"CA","server_name":"kafka.example"}`, "tls_failed", []string{"certificate", "kafka.example"}},
		{"no authority in it", "SSL", `,"tls":{"enabled":true,"ca_pem_env":"NO_PEM"}`, "tls_failed", []string{"NO_PEM", "no PEM certificate"}},
		{"tls to a plaintext port", "PLAINTEXT", `,"tls":{"enabled":true,"ca_pem_env":"CA"}`, "tls_failed", []string{"plaintext"}},
		{"plaintext to a tls port", "SSL", "", "tls_failed", []string{"TLS"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := *f
			f.TB = t
			f.brokers = broker.SecureAddr(c.protocol)
			if c.protocol == "PLAINTEXT" {
				f.brokers = broker.Addr()
			}
			name := fmt.Sprintf("s%d", i)
			f.declare(name, topic, c.extra)
			begun := time.Now()
			if c.code == "ok" {
				f.completed(name, 5, 5)
				return
			}
			e := f.run(name)
			took := time.Since(begun)
			f.ends(e, "Failed", c.code, c.says...)
			if c.code != "secret_missing" && !strings.Contains(c.name, "in it") {
				f.says(e.Message, f.brokers)
			}
			if e.Hint == "" || took > 20*time.Second {
				t.Errorf("told after %s: %q, %q", took, e.Message, e.Hint)
			}
			t.Logf("told after %s: %s", took.Round(time.Millisecond), e.Message)
			if strings.Contains(e.Message+e.Hint, "wr0ngpassword") {
				t.Errorf("the run tells a password: %s %s", e.Message, e.Hint)
			}
		})
	}
}
