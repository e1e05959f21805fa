package api_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"highwater/queue/job"
	"highwater/tests/harness"
)

// River's own client is the authority on what a job looks like: column for column, but for the id and the times.
func TestTheJobIsTheOneThatRiverWouldInsert(t *testing.T) {
	s, _ := stage(t)
	run := s.run("skip")
	pool := harness.Pool(t, s.Config().ConnString())
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Schema: job.Schema})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Insert(t.Context(), job.Run{RunID: run}, &river.InsertOpts{Queue: job.Queue}); err != nil {
		t.Fatal(err)
	}
	rows := get[[][]byte](s, "SELECT array_agg(to_jsonb(j) ORDER BY j.id) FROM connector_queue.river_job AS j")
	if len(rows) != 2 {
		t.Fatalf("%d jobs", len(rows))
	}
	var ours, theirs map[string]any
	for i, m := range []*map[string]any{&ours, &theirs} {
		if err := json.Unmarshal(rows[i], m); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"created_at", "scheduled_at"} {
			if when, err := time.Parse(time.RFC3339, (*m)[at].(string)); err != nil || time.Since(when).Abs() > time.Minute {
				t.Errorf("%s is %v", at, (*m)[at])
			}
			delete(*m, at)
		}
		delete(*m, "id")
	}
	if !reflect.DeepEqual(ours, theirs) {
		t.Errorf("ours is\n%v\nRiver's is\n%v", ours, theirs)
	}
}

func TestTheLedgerKnowsItsJob(t *testing.T) {
	s, _ := stage(t)
	run := s.run("skip")
	if !get[bool](s, "SELECT j.args ->> 'run_id' = $1 FROM connector._run AS r JOIN connector_queue.river_job AS j ON j.id = r.job_id", run.String()) {
		t.Error("the job is not the run's")
	}
}

// A hint goes out only where a row was made, with River's payload on River's channel.
func TestARunNotifiesOnceWhereARowWasMade(t *testing.T) {
	s, _ := stage(t)
	listener := connect(t, s.Config().ConnString())
	listener.must(`LISTEN "connector_queue.river_insert"; LISTEN marker`)
	var first uuid.UUID
	for range 3 { // the second and third join the first
		if run := s.run("wait"); first != uuid.Nil && run != first {
			t.Errorf("%s did not join %s", run, first)
		} else {
			first = run
		}
	}
	s.must("BEGIN; SELECT connector.run('acme'); ROLLBACK; NOTIFY marker")
	var heard []string
	for len(heard) == 0 || heard[len(heard)-1] != "marker " {
		n, err := listener.WaitForNotification(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		heard = append(heard, n.Channel+" "+n.Payload)
	}
	if want := []string{`connector_queue.river_insert {"queue":"connector"}`, "marker "}; !reflect.DeepEqual(heard, want) {
		t.Errorf("%q", heard)
	}
}
