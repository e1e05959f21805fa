package migrations_test

import (
	"bytes"
	"os/exec"
	"testing"

	"highwater/migrations"
	"highwater/sidecar/demo/postgres"
	"highwater/tests/harness"
)

// script runs the printed script with psql.
func script(t *testing.T, url string) {
	t.Helper()
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("psql is not on the PATH")
	}
	var text bytes.Buffer
	if err := migrations.Print(&text); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), psql, "-X", "-f", "-", url)
	cmd.Stdin = &text
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("psql: %v, output (none is wanted): %s", err, out)
	}
}

func TestThePrintedScriptDoesWhatApplyDoes(t *testing.T) {
	url := harness.EmptyDatabase(t)
	script(t, url)
	conn := connect(t, url)
	same(t, snapshot(t, connect(t, harness.Database(t)), false), snapshot(t, conn, false))

	before := snapshot(t, conn, true)
	apply(t, url)
	script(t, url)
	same(t, before, snapshot(t, conn, true))
}

func TestThePrintedScriptCarriesAnOlderDatabaseOn(t *testing.T) {
	url := harness.EmptyDatabase(t)
	first, err := migrations.Files.ReadFile("0001_manifest_and_tenants.sql")
	if err != nil {
		t.Fatal(err)
	}
	if err := applyFiles(t, url, map[string]string{"0001_manifest_and_tenants.sql": string(first)}, nil); err != nil {
		t.Fatal(err)
	}
	script(t, url)
	same(t, snapshot(t, connect(t, harness.Database(t)), false), snapshot(t, connect(t, url), false))
}

func TestThePrintedScriptNeedsNoSuperuser(t *testing.T) {
	onEach(t, func(t *testing.T, server *postgres.Server) {
		super := connect(t, server.URL("postgres"))
		do(t, super, "CREATE ROLE dba LOGIN CREATEROLE")
		do(t, super, "GRANT CREATE ON DATABASE postgres TO dba")
		script(t, as(t, server, "dba"))
	})
}
