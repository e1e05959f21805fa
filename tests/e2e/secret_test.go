package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"

	"highwater/migrations"
	"highwater/sidecar/app"
	"highwater/sidecar/demo/postgres"
	"highwater/sidecar/seal"
	"highwater/tests/harness"
)

// onSASL makes a fixture whose broker wants user acme with the password.
func onSASL(t *testing.T, url, password string) *fixture {
	t.Helper()
	c := harness.Fake(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "acme", password), kfake.SeedTopics(1, "acme.locked"))
	f := &fixture{TB: t, url: url, brokers: c.ListenAddrs()[0], keyFile: harness.KeyFile(t), lookup: func(string) (string, bool) { return "", false }}
	f.pool = harness.Pool(t, f.url)
	return f
}

const saslKeys = `,"auth":{"kind":"sasl-plain","security_protocol":"SASL_PLAINTEXT","username_env":"ACME_USER","password_env":"ACME_PW"}`

// commandArgs are the words of a command line that a test runs in a process of its own, a line each.
const commandArgs = "HIGHWATER_E2E_ARGS"

// command is that process.
func command() error {
	err := app.Run(context.Background(), strings.Split(os.Getenv(commandArgs), "\n"), os.LookupEnv, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return err
}

// program runs one command line of highwater and gives what it printed, and what it said beside that.
func (f *fixture) program(input string, args ...string) (printed, said string, err error) {
	f.Helper()
	cmd := exec.CommandContext(f.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=command", commandArgs+"="+strings.Join(args, "\n"), "HIGHWATER_DATABASE_URL="+f.url, "HIGHWATER_KEY_FILE="+f.keyFile)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// seal runs `highwater seal` on a value and gives the statement that it prints.
func (f *fixture) seal(name, value string, flags ...string) string {
	f.Helper()
	printed, said, err := f.program(value+"\n", append(append([]string{"seal"}, flags...), name)...)
	if err != nil || strings.Contains(said, value) {
		f.Fatalf("highwater seal: %v: %s", err, said)
	}
	return printed
}

func TestASecretOpensABrokerThatWantsAPassword(t *testing.T) {
	t.Parallel()
	const password = "it's \\ a \"pass\" $$ phrase"
	f := onSASL(t, harness.Database(t), password)
	f.sidecar(nil)
	f.declare("locked", "acme.locked", saslKeys)
	if e := f.run("locked"); e.Code != "secret_missing" || !strings.Contains(e.Message, "ACME_USER") || !strings.Contains(e.Message, "registry") || !strings.Contains(e.Message, "environment") || !strings.Contains(e.Hint, "highwater seal ACME_USER") {
		t.Errorf("before: %+v", e)
	}
	f.exec("CREATE EXTENSION pgcrypto")
	f.exec("SELECT connector.secret_set('ACME_USER', 'acme')")
	f.exec(f.seal("ACME_PW", password))
	if e := f.run("locked"); e.Status != "Completed" {
		t.Errorf("with both, one sealed in the server and one outside: %+v", e)
	}
	f.exec("SELECT connector.secret_drop('ACME_PW')")
	if e := f.run("locked"); e.Code != "secret_missing" || !strings.Contains(e.Message, "ACME_PW") {
		t.Errorf("after it was dropped: %+v", e)
	}
	f.exec(f.seal("ACME_PW", password, "-tenant", "2"))
	if e := f.run("locked"); e.Code != "secret_missing" || !strings.Contains(e.Message, "another key, for another tenant or name") {
		t.Errorf("a value sealed for another tenant: %+v", e)
	}
}

// One name, two tenants: each connector finds its own tenant's value, and another tenant's is as good as none.
func TestAnotherTenantsSecretIsUnknown(t *testing.T) {
	t.Parallel()
	f := onSASL(t, harness.Database(t), "right-password")
	f.sidecar(nil)
	f.exec("CREATE EXTENSION pgcrypto")
	f.exec("DO $$ BEGIN SET LOCAL app.current_tenant = '2'; PERFORM connector.secret_set('ACME_USER', 'acme'), connector.secret_set('ACME_PW', 'right-password'); END $$")
	spec := fmt.Sprintf(`{"name":"of_one","brokers":%q,"topic":"acme.locked"%s}`, f.brokers, saslKeys)
	f.exec("INSERT INTO connector.manifest (name, tenant_id, scopes, spec) VALUES ('of-one', 1, '{a}', $1)", spec)
	f.exec("INSERT INTO connector.manifest (name, tenant_id, scopes, spec) VALUES ('of-two', 2, '{a}', $1)", strings.Replace(spec, "of_one", "of_two", 1))
	for name, want := range map[string]string{"of-one": "secret_missing", "of-two": "ok"} {
		tenant := map[string]string{"of-one": "1", "of-two": "2"}[name]
		conn, err := pgx.Connect(t.Context(), f.url)
		if err != nil {
			t.Fatal(err)
		}
		var id, code string
		if _, err := conn.Exec(t.Context(), "SET app.current_tenant = '"+tenant+"'"); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(t.Context(), "SELECT connector.run($1)::text", name).Scan(&id); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(t.Context(), "SELECT code FROM connector.wait($1, '60 seconds')", id).Scan(&code); err != nil || code != want {
			t.Errorf("%s: %s, %v, want %s", name, code, err, want)
		}
		_ = conn.Close(t.Context())
	}
}

// start starts a sidecar with a key file and gives its error, if any.
func (f *fixture) start(keyFile string) (*app.Sidecar, error) {
	f.Helper()
	s, err := app.Start(f.Context(), app.Options{Config: f.config(keyFile), Environ: f.lookup, Logger: f.logger()})
	if err == nil {
		f.Cleanup(func() { _ = s.Stop(context.Background()) })
	}
	return s, err
}

func TestASidecarWithAnotherKeyDoesNotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := &fixture{TB: t, url: harness.Database(t), lookup: func(string) (string, bool) { return "", false }}
	f.pool = harness.Pool(t, f.url)
	ours, theirs, open := filepath.Join(dir, "a", "key.asc"), filepath.Join(dir, "b", "key.asc"), filepath.Join(dir, "open.asc")
	if _, err := f.start(ours); err != nil {
		t.Fatal(err)
	}
	first, err := seal.Load(ours)
	if err != nil {
		t.Fatal(err)
	}
	f.want(first.Fingerprint(), "SELECT fingerprint FROM connector.seal_key()")
	if _, err := f.start(ours); err != nil {
		t.Errorf("a second one with the same file: %v", err)
	}
	refused := func(path string, parts ...string) {
		t.Helper()
		_, err := f.start(path)
		if app.ExitCode(err) != app.ExitConfiguration {
			t.Fatalf("%s: exit code %d, %v", path, app.ExitCode(err), err)
		}
		for _, p := range append(parts, path) {
			if !strings.Contains(err.Error(), p) {
				t.Errorf("%v does not say %s", err, p)
			}
		}
	}
	refused(theirs, first.Fingerprint())
	if _, err := os.Stat(theirs); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key was made that nobody can use: %v", err)
	}
	other, err := seal.Generate()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(other.Create(theirs), first.Create(open), os.Chmod(open, 0o644)); err != nil {
		t.Fatal(err)
	}
	refused(theirs, first.Fingerprint(), other.Fingerprint())
	refused(open, "0644", "chmod 600")
}

// Of first sidecars that start at the same moment one makes the key; those with another file refuse, and leave no file behind.
func TestOneOfManyFirstSidecarsMakesTheKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := &fixture{TB: t, url: harness.Database(t), lookup: func(string) (string, bool) { return "", false }}
	f.pool = harness.Pool(t, f.url)
	paths := []string{"same/key.asc", "same/key.asc", "one/key.asc", "two/key.asc"}
	errs := make([]error, len(paths))
	var all sync.WaitGroup
	for i, p := range paths {
		all.Go(func() { _, errs[i] = f.start(filepath.Join(dir, p)) })
	}
	all.Wait()
	key := f.text("SELECT fingerprint FROM connector.seal_key()")
	for i, p := range paths {
		k, err := seal.Load(filepath.Join(dir, p))
		switch {
		case errs[i] == nil && (err != nil || k.Fingerprint() != key):
			t.Errorf("%s started: %v", p, err)
		case errs[i] != nil && (app.ExitCode(errs[i]) != app.ExitConfiguration || !errors.Is(err, fs.ErrNotExist)):
			t.Errorf("%s: %v, and its file: %v", p, errs[i], err)
		}
	}
	if slices.IndexFunc(errs, func(err error) bool { return err == nil }) < 0 {
		t.Errorf("none started: %v", errs)
	}
}

func TestReseal(t *testing.T) {
	t.Parallel()
	f := onSASL(t, harness.Database(t), "right-password")
	f.keyFile = filepath.Join(t.TempDir(), "key.asc")
	f.sidecar(nil)
	f.declare("locked", "acme.locked", saslKeys)
	f.exec(f.seal("ACME_USER", "acme"))
	statement := f.seal("ACME_PW", "right-password")
	f.exec(statement)
	old, err := seal.Load(f.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if out, said, err := f.program("", "reseal"); err != nil || !strings.Contains(out, "anew: 2") {
		t.Fatalf("reseal: %v: %s %s", err, out, said)
	}
	now, err := seal.Load(f.keyFile)
	if err != nil || now.Fingerprint() == old.Fingerprint() {
		t.Fatalf("the file holds %v, %v", now, err)
	}
	f.want(now.Fingerprint(), "SELECT fingerprint FROM connector.seal_key()")
	if aside, err := seal.Load(f.keyFile + "." + old.Fingerprint()[:16] + ".old"); err != nil || aside.Fingerprint() != old.Fingerprint() {
		t.Errorf("the old key: %v", err)
	}
	if e := f.run("locked"); e.Status != "Completed" { // the sidecar was never restarted
		t.Errorf("after the rotation: %+v", e)
	}
	if _, err := f.pool.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), now.ID()) {
		t.Errorf("a value sealed to the old key was taken: %v", err)
	}
	f.want("1", "SELECT count(*) FROM connector.audit WHERE action = 'secrets_resealed' AND detail ->> 'to' = '"+now.Fingerprint()+"'")

	// Cut off between the database and the file: the new key lies beside the old one, and the next start finishes.
	next := seal.Next(f.keyFile)
	if err := errors.Join(os.Rename(f.keyFile, next), os.Link(f.keyFile+"."+old.Fingerprint()[:16]+".old", f.keyFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.start(f.keyFile); err != nil {
		t.Fatal(err)
	}
	if k, err := seal.Load(f.keyFile); err != nil || k.Fingerprint() != now.Fingerprint() {
		t.Errorf("the rotation was not finished: %v", err)
	}
	// Lost for good.
	if err := os.Remove(f.keyFile); err != nil {
		t.Fatal(err)
	}
	if _, said, err := f.program("", "reseal"); err == nil || !strings.Contains(said, now.Fingerprint()) || !strings.Contains(said, "-lost") {
		t.Errorf("without its key: %v: %s", err, said)
	}
	f.want("2", "SELECT count(*) FROM connector.secrets")
	if out, said, err := f.program("", "reseal", "-lost"); err != nil || !strings.Contains(out, "erased: 2") {
		t.Errorf("lost: %v: %s %s", err, out, said)
	}
	f.want("0", "SELECT count(*) FROM connector.secrets")
	if e := f.run("locked"); e.Code != "secret_missing" {
		t.Errorf("after all: %+v", e)
	}
}

const canary = "canary-4f1d9b7e-never-seen"

// everywhere is each place of the database where a word could have been left, a text a row.
const everywhere = `
	SELECT 'runs', to_jsonb(x)::text FROM connector._run AS x UNION ALL
	SELECT 'log', to_jsonb(x)::text FROM connector._log AS x UNION ALL
	SELECT 'dlq', to_jsonb(x)::text FROM connector._dlq AS x UNION ALL
	SELECT 'audit', to_jsonb(x)::text FROM connector._audit AS x UNION ALL
	SELECT 'secret', to_jsonb(x)::text FROM connector._secret AS x UNION ALL
	SELECT 'value', encode(x.sealed, 'escape') FROM connector._secret_value AS x UNION ALL
	SELECT 'job', to_jsonb(x)::text FROM connector_queue.river_job AS x UNION ALL
	SELECT 'activity', x.query FROM pg_stat_activity AS x WHERE x.pid <> pg_backend_pid() UNION ALL
	SELECT 'statements', x.query FROM pg_stat_statements AS x`

// buffer is a log that many write to.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A value that highwater seal made is seen nowhere, whatever fails, on a server that logs every statement and parameter.
func TestASealedSecretIsSeenNowhere(t *testing.T) {
	t.Parallel()
	server, err := postgres.Start(t.Context(), postgres.Options{Settings: map[string]string{
		"fsync": "off", "shared_preload_libraries": "pg_stat_statements", "log_statement": "all", "log_min_duration_statement": "0", "log_parameter_max_length": "-1",
		"log_parameter_max_length_on_error": "-1", "log_min_messages": "debug1", "log_min_error_statement": "debug1",
	}})
	if err != nil {
		t.Skipf("LEFT OUT: no server with pg_stat_statements: %v", err)
	}
	t.Cleanup(server.Stop)
	config, err := pgx.ParseConfig(server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Apply(t.Context(), config, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	f := onSASL(t, server.URL("postgres"), "another-password")
	f.exec("CREATE EXTENSION pg_stat_statements")
	log := &buffer{}
	f.log = log
	var notices []string
	listener, err := pgx.Connect(t.Context(), f.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close(context.Background()) })
	if _, err := listener.Exec(t.Context(), `LISTEN highwater; LISTEN "connector_queue.river_insert"`); err != nil {
		t.Fatal(err)
	}
	f.sidecar(nil)
	for _, name := range []string{"ACME_USER", "ACME_PW", "PEM"} {
		f.exec(f.seal(name, canary))
	}
	f.declare("wrong", "acme.locked", saslKeys)
	f.declare("pem", "acme.locked", `,"tls":{"enabled":true,"ca_pem_env":"PEM"}`)
	f.declare("pair", "acme.locked", `,"tls":{"enabled":true,"cert_pem_env":"PEM","key_pem_env":"PEM"}`)
	f.declare("tls", "acme.locked", `,"stall_timeout_ms":5000`+strings.Replace(saslKeys, "SASL_PLAINTEXT", "SASL_SSL", 1))
	f.declare("scram", "acme.locked", strings.Replace(saslKeys, "sasl-plain", "sasl-scram-sha-512", 1))
	f.exec("INSERT INTO connector.manifest (name, scopes, spec) VALUES ('away', '{a}', $1)", `{"name":"away","brokers":"127.0.0.1:1","topic":"x"`+saslKeys+`}`)
	for _, name := range []string{"wrong", "pem", "pair", "tls", "scram", "away"} {
		if e := f.run(name); e.Status != "Failed" || e.Code == "secret_missing" || e.Code == "internal" {
			t.Errorf("%s: %+v", name, e)
		}
	}
	for n := range 6 {
		note, err := listener.WaitForNotification(t.Context())
		if err != nil {
			t.Fatalf("notification %d: %v", n, err)
		}
		notices = append(notices, note.Payload)
	}
	rows, err := f.pool.Query(t.Context(), everywhere)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	var place, text string
	if _, err := pgx.ForEachRow(rows, []any{&place, &text}, func() error {
		if seen[place]++; strings.Contains(text, canary) {
			t.Errorf("%s: %s", place, text)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"runs", "log", "audit", "secret", "value", "job", "statements"} {
		if seen[p] == 0 {
			t.Errorf("nothing was looked at in %s", p)
		}
	}
	if said := log.String() + strings.Join(notices, "\n"); strings.Contains(said, canary) || !strings.Contains(said, "run ended") {
		t.Errorf("the sidecar's log: %s", said)
	}
	b, err := os.ReadFile(server.LogPath())
	if err != nil {
		t.Fatal(err)
	}
	written := string(b)
	if !strings.Contains(written, "secret_set") || strings.Contains(written, canary) {
		t.Errorf("the server's log, %d bytes, shows the value, or not the statements", len(written))
	}
}
