package manifests

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"

	"highwater/sidecar/demo/broker"
	"highwater/sidecar/demo/corpus"
	"highwater/sidecar/demo/gesture"
	"highwater/sidecar/demo/postgres"
)

// stub stands in for the product: a manifest that refuses one name as the validator would, a ledger, and a catch-up whose
// runs say which broker the manifest named, and fail while the ledger holds none.
const stub = `
CREATE SCHEMA connector;
CREATE TABLE connector.manifest (name text PRIMARY KEY, scopes text[], spec jsonb);
CREATE TABLE connector.runs (run_id uuid PRIMARY KEY, connector text, status text, records_in bigint, message text,
    started_by text, scheduled_at timestamptz, ended_at timestamptz);
CREATE FUNCTION connector.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.name = 'bad' THEN
        RAISE EXCEPTION '1 error, 1 warning' USING ERRCODE = '22023', DETAIL = E'ERROR spec.name: no\nWARN spec.x: unknown', HINT = 'Mend it.';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refuse BEFORE INSERT ON connector.manifest FOR EACH ROW EXECUTE FUNCTION connector.refuse();
CREATE PROCEDURE connector.catch_up(name text, INOUT run_id uuid DEFAULT NULL, INOUT status text DEFAULT NULL) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO connector.runs SELECT gen_random_uuid(), m.name,
        CASE WHEN EXISTS (SELECT FROM connector.runs AS r WHERE r.connector = m.name) THEN 'Completed' ELSE 'Failed' END,
        7, 'read from ' || (m.spec ->> 'brokers'), 'manual', clock_timestamp(), clock_timestamp()
    FROM connector.manifest AS m WHERE m.name = catch_up.name RETURNING run_id, status INTO catch_up.run_id, catch_up.status;
    COMMIT;
END $$;`

func setup(t *testing.T) *Runner {
	t.Helper()
	server, err := postgres.Start(t.Context(), postgres.Options{Settings: map[string]string{"fsync": "off"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	pool, err := pgxpool.New(t.Context(), server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), stub); err != nil {
		t.Fatal(err)
	}
	b, err := broker.Start(t.Context(), broker.Options{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	return &Runner{Pool: pool, Brokers: b.Addr()}
}

func (r *Runner) check(t *testing.T, lines ...string) []Difference {
	t.Helper()
	m, err := Parse("x.sql", strings.Join(lines, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return r.Check(t.Context(), m)
}

func declare(name string) string {
	return `INSERT INTO connector.manifest (name, scopes, spec) VALUES ('` + name + `', '{a}', '{"brokers": "127.0.0.1:29092"}') ON CONFLICT DO NOTHING;`
}

func TestRunner(t *testing.T) {
	r := setup(t)
	client, err := corpus.Connect(r.Brokers)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 1, 1, nil, "acme.there"); err != nil {
		t.Fatal(err)
	}
	call := "CALL connector.catch_up('good');"
	for _, c := range []struct {
		name  string
		lines []string
		want  []string // a part of each difference
	}{
		{"all as expected", []string{
			"-- Expect: run 1: status=Failed records_in=7 message~" + r.Brokers,
			"-- Expect: run 2: status=Completed",
			"-- Expect-sql: SELECT count(*), '127.0.0.1:29092' FROM connector.runs WHERE run_id IN (:'run1', :'run2') => 2|" + r.Brokers,
			"-- Expect-no-topic: acme.absent", declare("good"), call, call,
		}, nil},
		{"a column that differs comes with the run's own words", []string{
			"-- Expect: run 1: status=Partial records_in=7", declare("good"), call,
		}, []string{"x.sql: run 1 status: want Partial, got Completed (message: read from " + r.Brokers + ")"}},
		{"a text that is not in the message", []string{
			"-- Expect: run 1: message~nowhere", declare("good"), call,
		}, []string{"want a text with nowhere, got read from"}},
		{"a column that does not exist", []string{
			"-- Expect: run 1: colour=red", declare("good"), call,
		}, []string{"run 1 colour: want red, got no such column"}},
		{"a call that makes no run", []string{
			"-- Expect: run 1: status=Completed", declare("idle"), "CALL connector.catch_up('other');",
		}, []string{"CALL connector.catch_up('other'): want no error, got no run was made", "run 1: want a run, got 0 runs"}},
		{"an answer that differs", []string{
			"-- Expect-sql: SELECT 1, NULL => 2|", declare("good"),
		}, []string{"SELECT 1, NULL: want 2|, got 1|"}},
		{"a query that fails", []string{
			"-- Expect-sql: SELECT nothing => 1", declare("good"),
		}, []string{`want 1, got 42703 column "nothing" does not exist`}},
		{"a statement that fails where none should", []string{
			"-- Expect-sql: SELECT 1 => 1", declare("good"), "SELECT 1/0;",
		}, []string{"SELECT 1/0: want no error, got 22012 division by zero"}},
		{"a refusal as expected", []string{
			"-- Expect-error: 22023: WARN spec.x, ERROR spec.name", declare("bad"),
		}, nil},
		{"a refusal that names something else", []string{
			"-- Expect-error: 22023: ERROR spec.name", declare("bad"),
		}, []string{"want 22023: ERROR spec.name, got 22023 1 error, 1 warning | ERROR spec.name: no\nWARN spec.x: unknown | Mend it."}},
		{"no refusal where one should be", []string{
			"-- Expect-error: 22023: ERROR spec.name", declare("good"),
		}, []string{"the refusal: want 22023: ERROR spec.name, got error <nil>"}},
		{"a topic that exists", []string{
			"-- Expect-no-topic: acme.there", declare("good"),
		}, []string{"topic acme.there: want none"}},
		{"a gesture that fails", []string{
			"-- Expect-sql: SELECT :fed => 0", declare("good"), `\! highwater trim --topic acme.nowhere --before 1`, `\! highwater feed --topic acme.nowhere`,
		}, []string{"highwater trim: want no error", "highwater feed: want no error"}},
		{"an environment that cannot be set", []string{
			"-- Expect-sql: SELECT 1 => 1", declare("good"), "-- Gesture: environment ACME_X=1",
		}, []string{"environment ACME_X: want set"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := r.check(t, c.lines...)
			if len(got) != len(c.want) {
				t.Fatalf("differences %v, want %d", got, len(c.want))
			}
			for i, want := range c.want {
				if !strings.Contains(got[i].String(), want) {
					t.Errorf("difference %q, want %q in it", got[i], want)
				}
			}
		})
	}
}

func TestFeedsAreCountedAndWaitedFor(t *testing.T) {
	r := setup(t)
	begun := make(chan struct{})
	var asked []gesture.FeedOptions
	r.Feed = func(_ context.Context, o gesture.FeedOptions) (gesture.Fed, error) {
		asked = append(asked, o)
		if len(asked) == 1 {
			<-begun // the background feed ends only after the statement behind it has run
		}
		return gesture.Fed{Count: 5, Until: time.Now()}, nil
	}
	env := map[string]string{}
	r.SetEnv = func(name, value string) {
		env[name] = value
		if value == "go" {
			close(begun)
		}
	}
	got := r.check(t, "-- Expect-sql: SELECT :fed, now() - :'fed_until' < interval '1 minute' => 10|t", declare("good"),
		`\! highwater feed --seconds 0.01 &`, "-- Gesture: environment ACME_X=go", `\! sleep 0.1`, `\! highwater feed`)
	if len(got) != 0 {
		t.Errorf("differences %v", got)
	}
	if len(asked) != 2 || asked[0].Brokers != r.Brokers {
		t.Errorf("feeds %+v", asked)
	}
	if env["ACME_X"] != "" {
		t.Errorf("the variable is still %q", env["ACME_X"])
	}
}

func TestAnEndOfTheContextIsADifference(t *testing.T) {
	r := setup(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("over"))
	m := All()[0]
	if got := r.Check(ctx, m); len(got) == 0 || got[0].What != "the file" {
		t.Errorf("differences %v", got)
	}
}
