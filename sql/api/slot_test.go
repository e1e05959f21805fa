package api_test

import (
	"testing"
	"time"

	"highwater/tests/harness"
)

func TestTheNextSlotLiesInTheWindow(t *testing.T) {
	s := connect(t, harness.Database(t))
	for _, c := range []struct{ schedule, window, after, want string }{
		{"*/5 * * * *", "", "2026-02-03 10:17", "2026-02-03 10:20"},
		{"*/5 * * * *", "06:00-22:00", "2026-02-03 10:17", "2026-02-03 10:20"},
		{"*/5 * * * *", "06:00-22:00", "2026-02-03 21:54", "2026-02-03 21:55"},
		{"*/5 * * * *", "06:00-22:00", "2026-02-03 21:55", "2026-02-04 06:00"}, // the end is exclusive, the start is not
		{"*/5 * * * *", "06:00-22:00", "2026-02-03 03:00", "2026-02-03 06:00"},
		{"*/5 * * * *", "06:03-22:00", "2026-02-03 03:00", "2026-02-03 06:05"},
		{"*/5 * * * *", "22:00-06:00", "2026-02-03 10:00", "2026-02-03 22:00"}, // over midnight
		{"*/5 * * * *", "22:00-06:00", "2026-02-03 23:55", "2026-02-04 00:00"},
		{"*/5 * * * *", "22:00-06:00", "2026-02-04 05:55", "2026-02-04 22:00"},
		{"*/5 * * * *", "22:00-00:00", "2026-02-03 23:55", "2026-02-04 22:00"}, // until midnight
		{"*/5 * * * *", "00:00-00:05", "2026-02-03 00:00", "2026-02-04 00:00"},
		{"0 3 * * *", "22:00-06:00", "2026-02-03 10:00", "2026-02-04 03:00"},
		{"0 3 * * *", "06:00-22:00", "2026-02-03 10:00", ""},
		{"0 5,23 * * 1", "22:00-05:00", "2026-02-03 10:00", "2026-02-09 23:00"}, // Mondays; 05:00 is outside
		{"0 7,23 1 * *", "22:00-06:00", "2026-02-03 10:00", "2026-03-01 23:00"},
		{"0 1,12 1 * *", "06:00-22:00", "2026-02-01 12:00", "2026-03-01 12:00"},
		{"0 0,12 29 2 *", "06:00-22:00", "2026-02-03 10:00", "2028-02-29 12:00"},
	} {
		t.Run(c.schedule+" "+c.window+" "+c.after, func(t *testing.T) {
			next := get[*time.Time](s, "SELECT connector._next_slot($1, nullif($2, ''), $3::timestamp AT TIME ZONE 'UTC')", c.schedule, c.window, c.after)
			got := ""
			if next != nil {
				got = next.UTC().Format("2006-01-02 15:04")
			}
			if got != c.want {
				t.Errorf("next is %q, want %q", got, c.want)
			}
		})
	}
}

// The stepper jumps over the hours in which the window is closed. Walking through them slot by slot must end at the same.
func TestJumpsOverAClosedWindowMissNothing(t *testing.T) {
	s := connect(t, harness.Database(t))
	differs := get[string](s, `
		WITH RECURSIVE walk (schedule, hours, after, at, n) AS (
			SELECT c.schedule, w.hours, a.after, connector.cron_next(c.schedule, a.after), 1
			FROM unnest('{"7,37 */5 * * *","0 1,13,22 * * *","59 23 * * 1,4","30 0,6,12,18 1,31 * *","15 4 * 2,3 *","0 21 2 * 5"}'::text[]) AS c (schedule)
			CROSS JOIN unnest('{06:00-22:00,22:00-06:00,21:00-01:00,00:00-13:00,13:00-00:00,23:59-00:00,04:15-04:16}'::text[]) AS w (hours)
			CROSS JOIN generate_series('2027-12-29 05:31Z'::timestamptz, '2028-03-02Z', '301 h') AS a (after)
			UNION ALL
			SELECT k.schedule, k.hours, k.after, connector.cron_next(k.schedule, k.at), k.n + 1
			FROM walk AS k
			WHERE NOT connector._in_window(k.hours, k.at) AND k.n < 60)
		SELECT coalesce(string_agg(concat_ws(' ', l.schedule, l.hours, l.after, 'walked to', l.at, 'jumped to', l.jumped), E'\n'), '')
		FROM (SELECT k.*, connector._next_slot(k.schedule, k.hours, k.after) AS jumped FROM walk AS k WHERE k.n = 60 OR connector._in_window(k.hours, k.at)) AS l
		WHERE l.jumped IS DISTINCT FROM CASE WHEN connector._in_window(l.hours, l.at) THEN l.at END`)
	if differs != "" {
		t.Error(differs)
	}
}
