package e2e

import (
	"fmt"
	"testing"
	"time"
)

// letterTopic holds four good messages and, at offsets 4 to 7, two of another type, one that is broken and one whose key is
// no text.
func (f *fixture) letterTopic() {
	f.Helper()
	topic := f.topic("letters", 1, nil)
	f.produce(topic, 0, `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`)
	f.produce(topic, 0, `{"n":"five"}`, `{"n":"six"}`, `{broken`, `{"n":"eight"}`)
	f.declare("letters", topic, `,"chunk_rows":4,"include":["key"]`)
}

const openLetters = "array(SELECT id FROM connector.dlq WHERE connector = 'letters' AND status = 'open')"

// A retry lands what today's configuration takes, marks it replayed, and leaves the others open with the new reason.
func TestARetryLandsLettersUnderTodaysConfiguration(t *testing.T) {
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		f.letterTopic()
		f.sidecar(nil)
		if e := f.run("letters"); e.DeadLetters != 4 {
			t.Fatalf("%+v", e)
		}
		position := f.text("SELECT cursor->'offsets'->>'0' FROM connector.connector_cursor")
		e := f.wait(f.text("connector.dlq_retry(" + openLetters + ")"))
		if e.Status != "Completed" || e.RecordsIn != 4 || e.RecordsOut != 0 || e.DeadLetters != 4 || e.Hint == "" {
			t.Errorf("under the same configuration: %+v", e)
		}
		f.want("2 open", "SELECT DISTINCT attempts || ' ' || status FROM connector.dlq")
		f.exec(`UPDATE connector.manifest SET spec = spec || '{"type_change": "widen"}' WHERE name = 'letters'`)
		e = f.wait(f.text("connector.dlq_retry(" + openLetters + ")"))
		if e.Status != "Completed" || e.RecordsIn != 4 || e.RecordsOut != 3 || e.DeadLetters != 1 || e.Duplicates != 0 {
			t.Errorf("once the column may be widened: %+v", e)
		}
		f.want("replayed replayed open replayed", `SELECT string_agg(status, ' ' ORDER BY "offset") FROM connector.dlq`)
		f.want("3", "SELECT attempts FROM connector.dlq WHERE status = 'open'")
		f.want("1 2 3 4 five six eight", "SELECT string_agg(n, ' ' ORDER BY id) FROM connector.t_letters")
		f.want("7", "SELECT count(DISTINCT _source) FROM connector.t_letters")
		f.want("k1", "SELECT _key FROM connector.t_letters WHERE n = 'six'")
		f.want(position, "SELECT cursor->'offsets'->>'0' FROM connector.connector_cursor")
		f.want("row", "SELECT outcome FROM connector.trace('letters', 0, 5)")
		f.want("dead letter", "SELECT outcome FROM connector.trace('letters', 0, 6)")
		f.completed("letters", 0, 0)
	})
}

// Whatever step a retry dies at, the sidecar that takes it over lands each letter once.
func TestAKilledRetryIsTakenOverExactlyOnce(t *testing.T) {
	for _, at := range []string{"run-claimed@1", "locked@2", "copied@2", "advanced@2", "commit-sent@2", "committed@2", "committed@4"} {
		t.Run(at, func(t *testing.T) {
			f := onFake(t)
			f.letterTopic()
			s := f.sidecar(nil)
			f.run("letters")
			if err := s.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.exec(`UPDATE connector.manifest SET spec = spec || '{"type_change": "widen"}' WHERE name = 'letters'`)
			_, ended := f.startChild(at)
			runID := f.text("connector.dlq_retry(" + openLetters + ")")
			select {
			case <-ended:
			case <-time.After(60 * time.Second):
				t.Fatal("the step was not reached")
			}
			f.want(f.text("SELECT count(*) + 4 FROM connector.dlq WHERE status = 'replayed'"), "SELECT count(*) FROM connector.t_letters")
			f.startChild("-")
			if e := f.wait(runID); e.Status != "Completed" || fmt.Sprint(e.RecordsIn, e.RecordsOut, e.DeadLetters, e.Duplicates) != "4 3 1 0" {
				t.Errorf("after the restart: %+v", e)
			}
			f.want("7 7", "SELECT count(*) || ' ' || count(DISTINCT _source) FROM connector.t_letters")
		})
	}
}
