package e2e

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// How many messages a chunk has is the manifest's: a larger number is clamped, a smaller one makes more transactions.
// Several connectors read one topic, each to its own position and into its own table.
func TestChunksOfAGivenSize(t *testing.T) {
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		topic := f.topic("sizes", 1, nil)
		f.produce(topic, 0, partners(0, 2400)...)
		f.sidecar(nil)
		for name, c := range map[string]struct {
			extra  string
			chunks int64
		}{
			"default-clamped": {`,"max_poll_records":5000`, 5},
			"at-most":         {`,"max_poll_records":500`, 5},
			"a-hundred":       {`,"max_poll_records":100`, 24},
			"all-at-once":     {`,"chunk_rows":5000`, 2}, // the first is the sample of 500 that the table is made from
		} {
			f.declare(name, topic, c.extra)
			if e := f.completed(name, 2400, 2400); e.Chunks != c.chunks {
				t.Errorf("%s landed %d chunks, want %d", name, e.Chunks, c.chunks)
			}
			f.want("2400", "SELECT count(*) FROM connector.t_"+strings.ReplaceAll(name, "-", "_"))
		}
		f.want("4", `SELECT count(*) FROM connector.connector_cursor WHERE cursor->'offsets' = '{"0": 2400}'`)
	})
}

// A reset makes the next run a first read: it writes everything it reads, the table takes nothing twice, and the ledger says
// both. Deleting takes the table, the position and the open letters, and leaves the topic, which can be read again.
func TestResetAndDeleteLeaveTheTopic(t *testing.T) {
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		topic := f.topic("again", 1, nil)
		f.produce(topic, 0, append(partners(0, 2400), "[]")...)
		f.sidecar(nil)
		f.declare("again", topic, "")
		f.declare("beside", topic, "")
		f.completed("again", 2401, 2400)
		f.completed("beside", 2401, 2400)

		f.exec(`CREATE TABLE public.seen (id bigint);
			CREATE FUNCTION public.see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.seen VALUES (NEW.id); RETURN NULL; END $$;
			CREATE TRIGGER see AFTER INSERT ON connector.t_again FOR EACH ROW EXECUTE FUNCTION public.see()`)
		f.want("1", "SELECT connector.reset_cursor('again/default')")
		f.want("0", "SELECT count(*) FROM connector.connector_cursor WHERE connector = 'again' AND cursor->'offsets' <> '{}'")
		e := f.completed("again", 2401, 2400)
		if e.Duplicates != 2400 || e.DeadLetters != 1 {
			t.Errorf("read again: %+v, want 2400 duplicates and the letter met again", e)
		}
		f.want("2400", "SELECT count(*) FROM connector.t_again")
		f.want("0", "SELECT count(*) FROM public.seen") // nothing that was refused as a duplicate is told to anybody
		f.want("2|open|"+e.RunID, "SELECT concat_ws('|', attempts, status, run_id) FROM connector.dlq WHERE connector = 'again'")

		f.exec("SELECT connector.drop('again')")
		f.want("<null>", "SELECT to_regclass('connector.t_again')")
		f.want("0", "SELECT count(*) FROM connector.connector_cursor WHERE connector = 'again'")
		f.want("0", "SELECT count(*) FROM connector.dlq WHERE connector = 'again' AND status = 'open'")
		f.want("2", "SELECT count(*) FROM connector.runs WHERE connector = 'again'")
		if end := f.end(topic, 0); end != 2401 {
			t.Errorf("the topic ends at %d, want 2401", end)
		}
		f.want("2400", "SELECT count(*) FROM connector.t_beside")
		f.completed("beside", 0, 0)
		f.declare("again", topic, "")
		f.completed("again", 2401, 2400)
		f.want("2400", "SELECT count(*) FROM connector.t_again")
	})
}

// A topic of nothing but poison cannot hold a run for ever: it stops on its budget, Partial, says why, keeps its letters and
// its position, and the next run goes on past them to the good messages.
func TestThePoisonBudget(t *testing.T) {
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		topic := f.topic("poison", 1, nil)
		f.produce(topic, 0, repeated(450, "{\"broken\": ")...)
		f.produce(topic, 0, partners(0, 50)...)
		f.sidecar(nil)
		f.declare("poison", topic, `,"max_poll_records":100,"poison_chunks":3`)
		e := f.run("poison")
		f.ends(e, "Partial", "poison_budget", "3 chunks in a row", "not one message", "json")
		if e.RecordsIn != 300 || e.RecordsOut != 0 || e.Skipped != 300 || e.DeadLetters != 300 || e.Chunks != 3 {
			t.Errorf("the run stopped with %+v", e)
		}
		f.want(`{"0": 300}`, "SELECT cursor->'offsets' FROM connector.connector_cursor")
		f.want("short", "SELECT reached FROM connector.run_partitions WHERE run_id = $1", e.RunID)
		f.want("<null>", "SELECT to_regclass('connector.t_poison')") // a table is made by the first row
		f.completed("poison", 200, 50)
		f.want("450|450|1", "SELECT concat_ws('|', count(*), count(DISTINCT \"offset\"), max(attempts)) FROM connector.dlq")
		f.completed("poison", 0, 0) // a letter's message is never read again
	})
}

// repeated gives a value n times.
func repeated(n int, value string) []string {
	return strings.Split(strings.Repeat(value+"\n", n-1)+value, "\n")
}

// An address that refuses connections, and one that takes them and says nothing: a failed run that may be tried again and
// names both address and topic, never a green run over nothing.
func TestABrokerThatDoesNotAnswer(t *testing.T) {
	f := onFake(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := silent.Addr().String()
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
	f.sidecar(nil)
	good := f.brokers
	f.brokers = addr
	f.declare("dead", "acme.dead", "")
	e := f.run("dead")
	f.ends(e, "Failed", "broker_unreachable", addr, "acme.dead")
	f.want("true", "SELECT retryable FROM connector.runs WHERE run_id = $1", e.RunID)
	f.want("0", "SELECT records_in FROM connector.runs WHERE run_id = $1", e.RunID)
	f.want("<null>", "SELECT data_as_of FROM connector.connectors")

	topic := f.topic("back", 1, nil) // and a broker that comes back is what the next run finds
	f.produce(topic, 0, partners(0, 3)...)
	f.exec("UPDATE connector.manifest SET spec = spec || jsonb_build_object('brokers', $1::text, 'topic', $2::text)", good, topic)
	f.completed("dead", 3, 3)
}

// Fetches that come later than poll_timeout_ms end no run early: silence below the target is asked about, not believed.
func TestASlowFirstFetchIsNoEmptyTopic(t *testing.T) {
	f := onFake(t)
	topic := f.topic("slow", 1, nil)
	f.produce(topic, 0, partners(0, 700)...)
	var late atomic.Int64
	f.fake.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
		f.fake.KeepControl()
		if late.Add(1) <= 3 {
			ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
			defer cancel()
			<-ctx.Done()
		}
		return nil, nil, false
	})
	f.sidecar(nil)
	f.declare("slow", topic, `,"poll_timeout_ms":100`)
	f.completed("slow", 700, 700)
	if late.Load() == 0 {
		t.Error("nothing was late")
	}
}

// A field that appears on day two is typed like any other, behind the columns that are there, and the run says so. An object
// in a jsonb column loses the order of its keys, an array does not.
func TestFieldsOfDayTwoAndTheOrderOfKeys(t *testing.T) {
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		topic := f.topic("day", 1, nil)
		f.produce(topic, 0, `{"street_first":{"street":"a","city":"b"},"list":["z","a"],"n":null}`)
		f.sidecar(nil)
		f.declare("day", topic, "")
		f.completed("day", 1, 1)
		f.produce(topic, 0, `{"whole":1,"point":1.5,"yes":true,"deep":{"x":1},"word":"w","none":null}`, `{"list":[]}`)
		e := f.completed("day", 2, 2)
		f.want("street_first jsonb, list jsonb, n text, whole bigint, point numeric(18,4), yes boolean, deep jsonb, word text, none text",
			`SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM pg_attribute
				WHERE attrelid = 'connector.t_day'::regclass AND attnum > 7 AND NOT attisdropped`)
		for _, column := range []string{`"whole"`, "bigint", `"point"`, "numeric(18,4)", `"yes"`, "boolean", `"deep"`, "jsonb", `"word"`} {
			f.want("true", "SELECT bool_or(position($2 IN message) > 0) FROM connector.log WHERE run_id = $1 AND level = 'INFO'", e.RunID, strings.Trim(column, `"`))
		}
		f.want(`{"city": "b", "street": "a"}|["z", "a"]`, "SELECT concat_ws('|', street_first, list) FROM connector.t_day WHERE street_first IS NOT NULL")
		f.want("2", "SELECT count(*) FROM connector.t_day WHERE street_first IS NULL") // earlier columns are NULL where a field is gone
		f.want("1", "SELECT count(*) FROM connector.t_day WHERE whole IS NOT NULL")
	})
}

// A field with a reserved name is refused on a table that is there too, and nothing of its chunk lands.
func TestAReservedNameOnATableThatIsThere(t *testing.T) {
	f := onFake(t)
	topic := f.topic("res", 1, nil)
	f.produce(topic, 0, partners(0, 5)...)
	f.sidecar(nil)
	f.declare("res", topic, "")
	f.completed("res", 5, 5)
	f.produce(topic, 0, append(partners(5, 5), `{"id":1}`)...)
	e := f.run("res")
	f.ends(e, "Failed", "reserved_column", `"id"`, "_row_hash", "_ingested_at", "_source", "_run_id", "_mapping_version", "tenant_id")
	f.says(e.Message+e.Hint, "rename")
	f.want("5|5", "SELECT concat_ws('|', count(*), (SELECT cursor->'offsets'->>'0' FROM connector.connector_cursor)) FROM connector.t_res")
	f.exec(`UPDATE connector.manifest SET spec = spec || '{"rename":{"id":"partner_no"}}'`)
	f.completed("res", 6, 6)
}

// What the ledger says of a run that is done: the sum of a topic's partitions, its head logged before it is read.
func TestTheTargetIsMeasuredOnce(t *testing.T) {
	f := onFake(t)
	topic := f.topic("live", 3, nil)
	for p := range int32(3) {
		f.produce(topic, p, partners(100*int(p), 10*(int(p)+1))...)
	}
	_, g := f.heldSidecar("run-planned", 1)
	f.declare("live", topic, "")
	runID := f.held("live", g)
	f.produce(topic, 1, partners(500, 40)...)
	g.open()
	if e := f.wait(runID); e.Status != "Completed" || e.RecordsIn != 60 {
		t.Errorf("%+v, want the 60 messages that were there when the run measured", e)
	}
	f.want("1", "SELECT count(*) FROM connector.log WHERE run_id = $1 AND level = 'INFO' AND message = 'target: partition offsets [0: 10, 1: 20, 2: 30]'", runID)
	f.completed("live", 40, 40)
	f.want("100", "SELECT count(*) FROM connector.t_live")
	f.want(fmt.Sprintf("kafka:%s:1:59", topic), "SELECT _source FROM connector.t_live WHERE _source LIKE '%:1:%' ORDER BY id DESC LIMIT 1")
}

// A window shuts out the schedule's slots and nobody's own hand.
func TestARunByHandIgnoresTheWindow(t *testing.T) {
	f := onFake(t)
	topic := f.topic("window", 1, nil)
	f.produce(topic, 0, partners(0, 3)...)
	f.sidecar(nil)
	f.declare("shut", topic, f.text(`SELECT ',"schedule":"* * * * *","window":"' || to_char(now() AT TIME ZONE 'UTC' + interval '2 hours', 'HH24:MI')
		|| '-' || to_char(now() AT TIME ZONE 'UTC' + interval '4 hours', 'HH24:MI') || '"'`))
	f.completed("shut", 3, 3)
	f.want("1", "SELECT count(*) FROM connector.runs")
}
