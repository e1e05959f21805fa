package migrations_test

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"highwater/migrations"
	"highwater/tests/harness"
)

// A connector that was declared before schedules were carried out has its next slot as soon as a sidecar looks, and
// nothing is made up for: what passed before was never promised.
func TestSchedulesDeclaredEarlierGoOnWithTheirNextSlot(t *testing.T) {
	url := harness.EmptyDatabase(t)
	early := fstest.MapFS{}
	for _, name := range []string{"bootstrap.sql", "0001_manifest_and_tenants.sql", "0002_state.sql"} {
		text, err := fs.ReadFile(migrations.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		early[name] = &fstest.MapFile{Data: text}
	}
	if err := migrations.ApplyFrom(t.Context(), config(t, url), migrations.Options{}, early, fstest.MapFS{"ORDER": {}}); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, url)
	do(t, conn, `INSERT INTO connector.manifest (name, spec, tenant_id, connector_id) VALUES
		('acme', '{"name": "acme", "schedule": "*/5 * * * *", "window": "06:00-22:00"}', 1, gen_random_uuid()),
		('idle', '{"name": "idle"}', 1, gen_random_uuid())`)
	apply(t, url)
	if got := one[string](t, conn, `SELECT string_agg(concat_ws(' ', connector, schedule, "window", next_at), ', ') FROM connector._schedule`); got != "acme */5 * * * * 06:00-22:00" {
		t.Errorf("the schedules are %s", got)
	}
	if n := one[int](t, conn, "SELECT started FROM connector._fire_schedules('one')"); n != 0 {
		t.Errorf("%d runs were started", n)
	}
	if !one[bool](t, conn, "SELECT next_run_at > now() FROM connector.connectors WHERE name = 'acme'") {
		t.Error("it has no next run")
	}
}
