package migrations_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"highwater/migrations"
	"highwater/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

func config(tb testing.TB, url string) *pgx.ConnConfig {
	tb.Helper()
	c, err := pgx.ParseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func connect(tb testing.TB, url string) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func apply(tb testing.TB, url string) {
	tb.Helper()
	if err := migrations.Apply(tb.Context(), config(tb, url), migrations.Options{}); err != nil {
		tb.Fatal(err)
	}
}

func do(tb testing.TB, conn *pgx.Conn, sql string, args ...any) {
	tb.Helper()
	if _, err := conn.Exec(tb.Context(), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

func one[T any](tb testing.TB, conn *pgx.Conn, sql string, args ...any) (value T) {
	tb.Helper()
	if err := conn.QueryRow(tb.Context(), sql, args...).Scan(&value); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return value
}

// files are small migrations of a test's own; a nil text leaves a file out.
func files(tb testing.TB, numbered, repeatable map[string]string) (fs.FS, fs.FS) {
	tb.Helper()
	bootstrap, err := migrations.Files.ReadFile("bootstrap.sql")
	if err != nil {
		tb.Fatal(err)
	}
	steps := fstest.MapFS{"bootstrap.sql": {Data: bootstrap}}
	for name, text := range numbered {
		steps[name] = &fstest.MapFile{Data: []byte(text)}
	}
	api := fstest.MapFS{"ORDER": {Data: []byte("")}}
	for name, text := range repeatable {
		api[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return steps, api
}

func applyFiles(tb testing.TB, url string, numbered, repeatable map[string]string) error {
	tb.Helper()
	steps, api := files(tb, numbered, repeatable)
	return migrations.ApplyFrom(tb.Context(), config(tb, url), migrations.Options{}, steps, api)
}

// refused wants an error that has all the parts.
func refused(tb testing.TB, err error, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			tb.Fatalf("error %v, want %q in it", err, part)
		}
	}
}

func TestApplyingTwiceChangesNothing(t *testing.T) {
	url := harness.EmptyDatabase(t)
	apply(t, url)
	conn := connect(t, url)
	before := snapshot(t, conn, true)
	apply(t, url)
	same(t, before, snapshot(t, conn, true))
}

func TestEverythingBelongsToTheOwner(t *testing.T) {
	conn := connect(t, harness.Database(t))
	strangers := one[[]string](t, conn, `
		SELECT array_agg(x.what ORDER BY x.what) FROM (
			SELECT c.oid::regclass::text, c.relowner, c.relnamespace FROM pg_class AS c
			UNION ALL SELECT p.oid::regprocedure::text, p.proowner, p.pronamespace FROM pg_proc AS p
			UNION ALL SELECT y.oid::regtype::text, y.typowner, y.typnamespace FROM pg_type AS y
			UNION ALL SELECT n.nspname, n.nspowner, n.oid FROM pg_namespace AS n
		) AS x (what, owner, schema)
		WHERE x.schema IN ('connector'::regnamespace, 'connector_queue'::regnamespace) AND x.owner <> 'highwater_owner'::regrole`)
	if len(strangers) > 0 {
		t.Errorf("not owned by highwater_owner: %v", strangers)
	}
}

func TestTwoRunnersAtOnceApplyEachStepOnce(t *testing.T) {
	url := harness.EmptyDatabase(t)
	const runners = 3
	results := make(chan error, runners)
	for range runners {
		go func() { results <- migrations.Apply(t.Context(), config(t, url), migrations.Options{}) }()
	}
	for range runners {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if got := one[int](t, connect(t, url), "SELECT max(version) FROM connector_queue.river_migration"); got != migrations.RiverVersion {
		t.Errorf("River is at step %d, want %d", got, migrations.RiverVersion)
	}
}

func TestAChangedFileIsRefusedByName(t *testing.T) {
	url := harness.EmptyDatabase(t)
	numbered := map[string]string{"0001_one.sql": "CREATE TABLE connector.one ();", "0002_two.sql": "CREATE TABLE connector.two ();"}
	if err := applyFiles(t, url, numbered, nil); err != nil {
		t.Fatal(err)
	}
	changed := maps.Clone(numbered)
	changed["0001_one.sql"] += " "
	changed["0003_three.sql"] = "CREATE TABLE connector.three ();"
	refused(t, applyFiles(t, url, changed, nil), "0001_one.sql", "was changed")
	if one[bool](t, connect(t, url), "SELECT to_regclass('connector.three') IS NOT NULL") {
		t.Error("a later step was applied all the same")
	}
}

func TestADatabaseOfANewerProgramIsLeftAlone(t *testing.T) {
	numbered := map[string]string{"0001_one.sql": "", "0002_two.sql": ""}
	repeatable := map[string]string{"ORDER": "a.sql", "a.sql": "CREATE OR REPLACE FUNCTION connector.a() RETURNS integer LANGUAGE sql AS 'SELECT 2';"}
	for _, c := range []struct{ name, newer, part string }{
		{"by a numbered step", "", "0002_two.sql"},
		{"by a step of River's", "INSERT INTO connector_queue.river_migration (line, version) VALUES ('main', 1000)", "1000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := harness.EmptyDatabase(t)
			if err := applyFiles(t, url, numbered, repeatable); err != nil {
				t.Fatal(err)
			}
			older := maps.Clone(numbered)
			if c.newer == "" {
				delete(older, "0002_two.sql")
			} else {
				do(t, connect(t, url), c.newer)
			}
			err := applyFiles(t, url, older, map[string]string{"ORDER": "a.sql", "a.sql": strings.Replace(repeatable["a.sql"], "2", "1", 1)})
			refused(t, err, c.part)
			if !errors.Is(err, migrations.ErrNewer) {
				t.Errorf("error %v, want ErrNewer", err)
			}
			if got := one[int](t, connect(t, url), "SELECT connector.a()"); got != 2 {
				t.Errorf("the older program's functions were applied: %d", got)
			}
		})
	}
}

func TestAGapInTheNumbersIsRefused(t *testing.T) {
	err := applyFiles(t, harness.EmptyDatabase(t), map[string]string{"0001_one.sql": "", "0003_three.sql": ""}, nil)
	refused(t, err, "0003_three.sql")
}

func TestAFailedStepLeavesNothingAndIsNamedWithItsLine(t *testing.T) {
	url := harness.EmptyDatabase(t)
	numbered := map[string]string{
		"0001_one.sql": "CREATE TABLE connector.one ();",
		"0002_two.sql": "-- é\nCREATE TABLE connector.two ();\nSELECT * FROM nowhere;\n",
	}
	refused(t, applyFiles(t, url, numbered, nil), "0002_two.sql", "line 3", "nowhere")
	conn := connect(t, url)
	if !one[bool](t, conn, "SELECT to_regclass('connector.one') IS NOT NULL AND to_regclass('connector.two') IS NULL") {
		t.Error("want the first step kept and nothing of the second")
	}
	numbered["0002_two.sql"] = "CREATE TABLE connector.two ();"
	if err := applyFiles(t, url, numbered, nil); err != nil {
		t.Errorf("after the mending: %v", err)
	}
}

func TestRepeatableFilesAreAppliedAgainWhenOneChangedAllOrNone(t *testing.T) {
	url := harness.EmptyDatabase(t)
	function := func(name, value string) string {
		return "CREATE OR REPLACE FUNCTION connector." + name + "() RETURNS text LANGUAGE sql AS $$SELECT '" + value + "'$$;"
	}
	repeatable := map[string]string{"ORDER": "b.sql\na.sql\n", "a.sql": function("a", "1"), "b.sql": function("b", "1")}
	conn := connect(t, url)
	state := func() string { return one[string](t, conn, "SELECT connector.a() || connector.b()") }

	if err := applyFiles(t, url, nil, repeatable); err != nil {
		t.Fatal(err)
	}
	do(t, conn, function("a", "by hand"))
	if err := applyFiles(t, url, nil, repeatable); err != nil || state() != "by hand1" {
		t.Errorf("unchanged files were applied: %s, %v", state(), err)
	}
	repeatable["b.sql"] = function("b", "2")
	repeatable["a.sql"] = "nonsense;"
	refused(t, applyFiles(t, url, nil, repeatable), "sql/api/a.sql", "line 1")
	if state() != "by hand1" {
		t.Errorf("half of a failed set was applied: %s", state())
	}
	repeatable["a.sql"] = function("a", "2")
	if err := applyFiles(t, url, nil, repeatable); err != nil || state() != "22" {
		t.Errorf("after the change: %s, %v", state(), err)
	}
}

func TestASchemaOfSomebodyElseIsRefused(t *testing.T) {
	url := harness.EmptyDatabase(t)
	harness.Database(t) // so that the roles are there
	do(t, connect(t, url), "CREATE SCHEMA connector AUTHORIZATION highwater_reader")
	refused(t, migrations.Apply(t.Context(), config(t, url), migrations.Options{}), "connector", "highwater_reader")
}

func TestCheckTellsWhatIsMissingAndChangesNothing(t *testing.T) {
	check := func(url string) error { return migrations.Check(t.Context(), config(t, url)) }
	empty := harness.EmptyDatabase(t)
	refused(t, check(empty), "no schema of ours", "highwater migrate")
	if one[bool](t, connect(t, empty), "SELECT to_regnamespace('connector') IS NOT NULL") {
		t.Error("Check made a schema")
	}
	for _, c := range []struct{ name, change, part string }{
		{"as it should be", "", ""},
		{"a step behind", "DELETE FROM connector._migration WHERE number = (SELECT max(number) FROM connector._migration)", "lacks 000"},
		{"a changed step", "UPDATE connector._migration SET sha256 = 'x' WHERE number = 1", "was changed"},
		{"a newer one", "INSERT INTO connector._migration VALUES (9999, '9999_far.sql', 'x')", "newer version"},
		{"an older queue", "DELETE FROM connector_queue.river_migration WHERE version > 1", "River's step 1"},
		{"a newer queue", "INSERT INTO connector_queue.river_migration (line, version) VALUES ('main', 1000)", "newer version"},
		{"other functions", "UPDATE connector._repeatable SET sha256 = 'x'", "functions and views"},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := harness.Database(t)
			if c.change == "" {
				if err := check(url); err != nil {
					t.Error(err)
				}
				return
			}
			do(t, connect(t, url), c.change)
			refused(t, check(url), c.part)
		})
	}
}

// A newer River in go.mod brings steps that somebody must look at; then the pin moves, and this test is content.
func TestThePinnedStepIsTheNewestOfRiver(t *testing.T) {
	newest, err := migrations.RiverNewest()
	if err != nil || newest != migrations.RiverVersion {
		t.Errorf("River's newest step is %d, pinned is %d (%v)", newest, migrations.RiverVersion, err)
	}
}
