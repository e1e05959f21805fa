package api_test

import (
	"testing"
	"time"

	"highwater/tests/harness"
)

// at is a Tuesday.
var at = time.Date(2026, 2, 3, 10, 17, 30, 0, time.UTC)

func TestCronNextSteps(t *testing.T) {
	s := connect(t, harness.Database(t))
	for _, c := range []struct{ expr, want string }{
		{"* * * * *", "2026-02-03 10:18"},
		{"*/5 * * * *", "2026-02-03 10:20"},
		{"0 * * * *", "2026-02-03 11:00"},
		{"17 10 * * *", "2026-02-04 10:17"}, // later than the moment asked about, not equal to its minute
		{"18 10 * * *", "2026-02-03 10:18"},
		{"59 23 31 12 *", "2026-12-31 23:59"},
		{"0 0 * * 7", "2026-02-08 00:00"}, // 7 is Sunday
		{"0 0 * * 0", "2026-02-08 00:00"},
		{"0 0 * * SUN", "2026-02-08 00:00"},
		{"0 0 * * 5-7", "2026-02-06 00:00"},
		{"0 0 13 * 5", "2026-02-06 00:00"},   // both days restricted: either counts
		{"0 0 13 * *", "2026-02-13 00:00"},   // one of them: that one counts
		{"0 0 */2 * 5", "2026-02-05 00:00"},  // a step restricts
		{"0 0 */1 * 5", "2026-02-06 00:00"},  // a step of one does not
		{"0 0 *,13 * 5", "2026-02-06 00:00"}, // nor does a list with a star in it
		{"0 0 29 2 *", "2028-02-29 00:00"},
		{"0 0 31 * *", "2026-03-31 00:00"}, // February has none
		{"10/20 * * * *", "2026-02-03 10:30"},
		{"5-10/2,40 */6 * jan,JUL mon-Fri", "2026-07-01 00:05"},
		{"  0   6\t* * * ", "2026-02-04 06:00"},
		{"0 0 1 1 *", "2027-01-01 00:00"},
		{"0 0 30 2 *", ""}, // never comes
		{"0 0 31 2 *", ""},
		{"0 0 31 4,6,9,11 *", ""},
	} {
		t.Run(c.expr, func(t *testing.T) {
			next := get[*time.Time](s, "SELECT connector.cron_next($1, $2)", c.expr, at)
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

func TestCronNextRefusesWhatItDoesNotUnderstand(t *testing.T) {
	s := connect(t, harness.Database(t))
	for _, expr := range []string{
		"", "* * * *", "* * * * * *", "TZ=0", "TZ=0 * * * * *", "CRON_TZ=UTC * * * *", "@daily", "5-1 * * * *", "61 * * * *", "-1 * * * *",
		"* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 * ", "* * * * 8", "*/0 * * * *", "? * * * *", "* * L * *", "* * 1W * *", "* * * * 5#2",
		"* * * FOO *", "MON * * * *", "1,,2 * * * *", "1, * * * *", "*-5 * * * *", "1-2-3 * * * *", "1//2 * * * *", "0.5 * * * *",
		"99999999999999999999 * * * *", "* * * * SAT-SUN", "*\n* * * *",
	} {
		t.Run(expr, func(t *testing.T) {
			err := s.fails("22023", "SELECT connector.cron_next($1, $2)", expr, at)
			if err.Hint == "" {
				t.Errorf("no hint: %v", err)
			}
		})
	}
}

func TestCronNextLooksEightYearsAhead(t *testing.T) {
	s := connect(t, harness.Database(t))
	// 2100 is no leap year.
	next := get[time.Time](s, "SELECT connector.cron_next('0 0 29 2 *', '2096-03-01Z')")
	if want := time.Date(2104, 2, 29, 0, 0, 0, 0, time.UTC); !next.Equal(want) {
		t.Errorf("next is %s, want %s", next, want)
	}
}

func TestCronNextKnowsNoTimeZoneButUTC(t *testing.T) {
	s := connect(t, harness.Database(t))
	s.must("SET timezone = 'America/New_York'") // 2026-03-08 02:30 does not exist there
	next := get[time.Time](s, "SELECT connector.cron_next('30 2 * * *', '2026-03-08 00:00Z')")
	if want := time.Date(2026, 3, 8, 2, 30, 0, 0, time.UTC); !next.Equal(want) {
		t.Errorf("next is %s, want %s", next.UTC(), want)
	}
}

func TestCronNextOfNoTime(t *testing.T) {
	s := connect(t, harness.Database(t))
	for _, after := range []string{"NULL", "'infinity'", "'-infinity'"} {
		if next := get[*time.Time](s, "SELECT connector.cron_next('* * * * *', "+after+"::timestamptz)"); next != nil {
			t.Errorf("after %s comes %s", after, next)
		}
	}
}
