package land

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"highwater/migrations"
	"highwater/sidecar/demo/postgres"
	"highwater/tests/harness"
)

// The server is restarted within a chunk, politely and as by a power cut: the same chunk lands once, without an operator.
func TestAServerThatRestartsWithinAChunkCostsNothingButTime(t *testing.T) {
	s, err := postgres.Start(t.Context(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	config, err := pgxpool.ParseConfig(s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if err := migrations.Apply(t.Context(), config.ConnConfig, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		step string
		mode postgres.Mode
	}{
		"fast, rows copied":        {"copied", postgres.Fast},
		"fast, before COMMIT":      {"commit-sent", postgres.Fast},
		"power cut, rows copied":   {"copied", postgres.Immediate},
		"power cut, before COMMIT": {"commit-sent", postgres.Immediate},
		"kill, positions moved":    {"advanced", postgres.Sigkill},
	} {
		t.Run(name, func(t *testing.T) {
			pool := harness.Pool(t, s.URL("postgres"))
			b := &bundle{TB: t, url: s.URL("postgres"), admin: pool, pool: pool, next: map[int32]int64{}, lander: New(pool, Options{})}
			b.run = Run{ID: uuid.New(), Connector: name, ConnectorID: uuid.New(), TenantID: 1, Table: "t_" + name, Fence: 1, Topic: "acme.orders", MappingVersion: 1}
			b.plan(1000)
			b.started(2)
			restarts := 0
			b.lander.o.Failpoint = func(step string) {
				if restarts == 0 && step == c.step {
					restarts++
					if err := s.Restart(t.Context(), c.mode); err != nil {
						t.Error(err)
					}
				}
			}
			landed, err := b.land(b.chunk(0, []string{"n", "s"}, numbered(2, 5)))
			if err != nil {
				t.Fatal(err)
			}
			pool.Reset()
			if landed.Written != 5 || restarts != 1 || b.rows("true") != 7 || one[int64](b, "SELECT next_offset FROM connector._cursor WHERE connector_id = $1 AND partition = 0", b.run.ConnectorID) != 7 {
				t.Errorf("landed %+v after %d restarts, %d rows", landed, restarts, b.rows("true"))
			}
		})
	}
}
