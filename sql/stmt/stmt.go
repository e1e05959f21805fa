// Package stmt holds the statements that the sidecar sends, one a file, each prepared by a test against a migrated
// database so that a drift between the two fails in seconds.
package stmt

import (
	_ "embed" // the statements are files
	"maps"
)

// The statements; parameters and results are described in each file's first line.
var (
	//go:embed claim.sql
	Claim string
	//go:embed heartbeat.sql
	Heartbeat string
	//go:embed requeue_orphans.sql
	RequeueOrphans string
	//go:embed release.sql
	Release string
	//go:embed save_plan.sql
	SavePlan string
	//go:embed end_run.sql
	EndRun string
	//go:embed say.sql
	Say string
	//go:embed positions.sql
	Positions string
	//go:embed planned.sql
	Planned string
	//go:embed gauges.sql
	Gauges string
	//go:embed fire_schedules.sql
	FireSchedules string
	//go:embed resign.sql
	Resign string
)

// All gives every statement by its file's name, for the test that prepares them.
func All() map[string]string {
	all := map[string]string{
		"claim": Claim, "heartbeat": Heartbeat, "requeue_orphans": RequeueOrphans, "release": Release, "save_plan": SavePlan,
		"end_run": EndRun, "say": Say, "positions": Positions, "planned": Planned, "gauges": Gauges,
		"fire_schedules": FireSchedules, "resign": Resign,
	}
	maps.Copy(all, landing())
	maps.Copy(all, retries())
	maps.Copy(all, secrets())
	return all
}
