package migrations_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"highwater/migrations"
	"highwater/sidecar/demo/postgres"
	"highwater/tests/harness"
)

// psql gives what runs the printed script on a database. Whatever psql says is an error: the script works without a word.
func psql(t *testing.T) func(url string) error {
	t.Helper()
	program, err := exec.LookPath("psql")
	if err != nil {
		if os.Getenv("HIGHWATER_REQUIRE_KAFKA") == "1" {
			t.Fatal("psql is missing")
		}
		t.Skip("LEFT OUT: psql is missing, so the printed script was not run")
	}
	var text bytes.Buffer
	if err := migrations.Print(&text); err != nil {
		t.Fatal(err)
	}
	return func(url string) error {
		cmd := exec.CommandContext(t.Context(), program, "-X", "-d", url, "-f", "-")
		cmd.Stdin = bytes.NewReader(text.Bytes())
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			return errors.Join(err, fmt.Errorf("psql said (nothing is wanted): %s", out))
		}
		return nil
	}
}

func script(t *testing.T, url string) {
	t.Helper()
	if err := psql(t)(url); err != nil {
		t.Fatal(err)
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
