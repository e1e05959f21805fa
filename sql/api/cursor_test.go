package api_test

import "testing"

// read gives a stage whose connector has read 10 offsets of partition 0.
func read(t *testing.T) (*session, worker) {
	t.Helper()
	s, w := stage(t)
	w.whole(s.run("skip"), 0, 10)
	return s, w
}

const audited = "SELECT coalesce(string_agg(concat_ws(' ', action, connector, role = session_user, detail - 'topic_id'), E'\n' ORDER BY at), '') FROM connector.audit"

func TestResetForgetsPositionsAndIdentity(t *testing.T) {
	for _, name := range []string{"acme", "acme/default"} {
		t.Run(name, func(t *testing.T) {
			s, _ := read(t)
			s.must("UPDATE connector._endpoint SET poison_chunks = 3, seek_to = now()")
			if n := get[int](s, "SELECT connector.reset_cursor($1)", name); n != 1 {
				t.Errorf("%d partitions forgotten", n)
			}
			if !get[bool](s, `SELECT topic IS NULL AND topic_id IS NULL AND cluster_id IS NULL AND seek_to IS NULL AND poison_chunks = 0 AND data_as_of IS NOT NULL
				AND NOT EXISTS (SELECT FROM connector.connector_cursor) AND NOT EXISTS (SELECT FROM connector.lag) FROM connector._endpoint`) {
				t.Error("something was not forgotten")
			}
			if got := get[string](s, audited); got != `reset_cursor acme t {"topic": "acme.partners", "offsets": {"0": 10}, "cluster_id": "c"}` {
				t.Errorf("audit: %s", got)
			}
			if n := get[int](s, "SELECT connector.reset_cursor($1)", name); n != 0 {
				t.Errorf("%d partitions forgotten twice", n)
			}
			verified(t, s)
		})
	}
}

func TestSeek(t *testing.T) {
	s, w := read(t)
	s.must("SELECT connector.seek('acme', 0, 4)")
	s.must("SELECT connector.seek('acme', 7, 100)")
	if got := get[string](s, "SELECT cursor::text FROM connector.connector_cursor"); got != `{"type": "KafkaOffset", "offsets": {"0": 4, "7": 100}}` {
		t.Error(got)
	}
	if n := get[int](s, "SELECT count(*) FROM connector._cursor WHERE sought AND leader_epoch = -1"); n != 2 {
		t.Errorf("%d are sought", n)
	}
	verified(t, s)
	s.must("SELECT connector.seek('acme', timestamptz '2026-01-31 12:00Z')")
	if !get[bool](s, "SELECT seek_to = '2026-01-31 12:00Z' AND NOT EXISTS (SELECT FROM connector._cursor WHERE sought) FROM connector._endpoint") {
		t.Error("the time was not sought")
	}
	s.must("SELECT connector.seek('acme', 0, 5)")
	if !get[bool](s, "SELECT seek_to IS NULL FROM connector._endpoint") {
		t.Error("the last gesture does not hold")
	}
	if got := get[string](s, audited); got != `seek acme t {"to": 4, "from": 10, "partition": 0}
seek acme t {"to": 100, "from": null, "partition": 7}
seek acme t {"to_timestamp": "2026-01-31T12:00:00+00:00"}
seek acme t {"to": 5, "from": 4, "partition": 0}` {
		t.Errorf("audit: %s", got)
	}
	s.must("SELECT connector.seek('acme', now())")
	run := s.run("skip")
	w.plan(run, w.take(run), span{Start: 5, Target: 5, HighWatermark: 10})
	if !get[bool](s, "SELECT seek_to IS NULL FROM connector._endpoint") {
		t.Error("the plan did not use up the time")
	}
}

func TestPositionsAreNotMovedUnderARun(t *testing.T) {
	s, w := read(t)
	run := s.run("skip")
	fence := w.take(run)
	calls := []string{"SELECT connector.reset_cursor('acme')", "SELECT connector.seek('acme', 0, 1)", "SELECT connector.seek('acme', now())"}
	for _, call := range calls {
		pg := s.fails("55006", call)
		contains(t, "the message", pg.Message, `connector "acme" is busy`, run.String())
		contains(t, "the hint", pg.Hint, "connector.cancel")
	}
	w.end(run, fence, "Completed", "ok")
	s.run("skip") // one that is only queued is no obstacle
	for _, call := range calls {
		s.must(call)
	}
	if n := get[int](s, "SELECT count(*) FROM connector.audit"); n != 3 {
		t.Errorf("%d rows of audit", n)
	}
}

func TestPositionsRefuseBadValues(t *testing.T) {
	s, _ := read(t)
	for _, c := range []struct{ state, call string }{
		{"P0002", "SELECT connector.reset_cursor('nobody')"},
		{"P0002", "SELECT connector.reset_cursor('acme/other')"},
		{"P0002", "SELECT connector.reset_cursor(NULL)"},
		{"P0002", "SELECT connector.seek('nobody', 0, 1)"},
		{"P0002", "SELECT connector.seek('nobody', now())"},
		{"22023", "SELECT connector.seek('acme', -1, 1)"},
		{"22023", "SELECT connector.seek('acme', 0, -1)"},
		{"22023", "SELECT connector.seek('acme', NULL, 1)"},
		{"22023", "SELECT connector.seek('acme', 0, NULL)"},
		{"22023", "SELECT connector.seek('acme', NULL)"},
		{"22023", "SELECT connector.seek('acme', 'infinity')"},
	} {
		if pg := s.fails(c.state, c.call); pg.Hint == "" {
			t.Errorf("%s has no hint", c.call)
		}
	}
	if got := get[string](s, audited); got != "" {
		t.Errorf("audit: %s", got)
	}
}
