package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// changed makes a connector with a table of three rows, lets somebody change that, and gives the topic for more messages.
func (f *fixture) changed(name, extra, change string) (topic string) {
	f.Helper()
	topic = f.topic(name, 1, nil)
	f.produce(topic, 0, `{"n":1,"s":"a"}`, `{"n":2,"s":"b"}`, `{"n":3,"s":"c"}`)
	f.declare(name, topic, extra)
	f.completed(name, 3, 3)
	f.exec(strings.ReplaceAll(change, "@T", "connector.t_"+name))
	return topic
}

// What people do to a table is followed where it can be, and told where it cannot.
func TestAColumnThatPeopleChanged(t *testing.T) {
	f := onFake(t)
	f.sidecar(nil)
	for i, c := range []struct {
		name, change string
		values       []string
		rows         int64
		query, want  string
		letter       []string // words of the letter of the last message
		says         string   // in the log
	}{
		{
			"added, of a type that only people make",
			"CREATE TYPE public.mood AS ENUM ('ok'); ALTER TABLE @T ADD u uuid, ADD j jsonb, ADD i inet, ADD t timestamptz, ADD e public.mood, ADD d date",
			[]string{`{"n":4,"u":"5b0ab9c2-2bd0-4a0c-9e5c-93e7a0b2a1aa","j":"x","i":"10.0.0.1/8","t":"2024-03-01T00:00:00Z","e":"ok","d":"2024-02-29"}`, `{"n":5,"u":"no uuid"}`},
			1, "concat_ws(' ', u, j, i, t AT TIME ZONE 'UTC', e, d)", `5b0ab9c2-2bd0-4a0c-9e5c-93e7a0b2a1aa "x" 10.0.0.1/8 2024-03-01 00:00:00 ok 2024-02-29`,
			[]string{"Refused", "22P02", "uuid", `"u"`},
			"",
		},
		{"added, with a default", "ALTER TABLE @T ADD state text DEFAULT 'new'", []string{`{"n":4}`, `{"n":5,"state":"seen"}`, `{"n":6,"state":null}`}, 3, "coalesce(state, 'NULL')", "new,seen,NULL", nil, ""},
		{"added, not null, without a default", "ALTER TABLE @T ADD must text; UPDATE @T SET must = ''; ALTER TABLE @T ALTER must SET NOT NULL", []string{`{"n":4,"must":"x"}`, `{"n":5}`}, 1, "must", "x", []string{"Refused", "23502", `"must"`}, ""},
		{"added, generated", "ALTER TABLE @T ADD g bigint GENERATED ALWAYS AS (n * 2) STORED", []string{`{"n":4,"g":9}`, `{"n":5,"g":9}`}, 2, "g", "8,10", nil, `column "g" is generated`},
		{"dropped", "ALTER TABLE @T DROP s", []string{`{"n":4}`, `{"n":5,"s":"back"}`}, 2, "coalesce(s, 'NULL')", "NULL,back", nil, `new columns: "s" text`},
		{"retyped to text", "ALTER TABLE @T ALTER n TYPE text", []string{`{"n":4}`, `{"n":"x"}`, `{"n":{"a":1}}`}, 3, "n", `4,x,{"a":1}`, nil, ""},
		{"retyped to something narrower", "ALTER TABLE @T ALTER n TYPE smallint", []string{`{"n":4}`, `{"n":70000}`}, 1, "n", "4", []string{"Refused", "22003", `"n"`}, ""},
		{"renamed", "ALTER TABLE @T RENAME n TO number", []string{`{"n":4}`}, 1, "number IS NULL AND n = 4", "true", nil, `new columns: "n" bigint`},
		{"with a check", "ALTER TABLE @T ADD CONSTRAINT small CHECK (n < 100)", []string{`{"n":4,"s":"ok"}`, `{"n":4711,"s":"canary"}`}, 1, "n", "4", []string{"Refused", "23514", `"small"`}, ""},
		{
			"with a deferred constraint", "CREATE TABLE public.seven (n bigint PRIMARY KEY); INSERT INTO public.seven SELECT generate_series(1, 7); ALTER TABLE @T ADD CONSTRAINT known FOREIGN KEY (n) REFERENCES public.seven DEFERRABLE INITIALLY DEFERRED",
			[]string{`{"n":7}`, `{"n":8}`},
			1, "n", "7",
			[]string{"Refused", "23503", `"known"`},
			"",
		},
		{
			"with a trigger that raises", `CREATE FUNCTION public.no_seven() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.n = 77 THEN RAISE EXCEPTION 'no 77s here' USING ERRCODE = 'AB123'; END IF; RETURN NEW; END $$;
			CREATE TRIGGER judge BEFORE INSERT ON @T FOR EACH ROW EXECUTE FUNCTION public.no_seven()`,
			[]string{`{"n":76}`, `{"n":77}`},
			1, "n", "76",
			[]string{"Refused", "AB123", "no 77s here"},
			"",
		},
		{"used by a view that forbids a widening", "CREATE VIEW public.w AS SELECT n FROM @T", []string{`{"n":4}`, `{"n":4.5}`}, 1, "n", "4", []string{"TypeConflict", `"n"`, "4.5", "view"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := *f
			f.TB = t
			name := fmt.Sprintf("p%d", i)
			topic := f.changed(name, "", c.change)
			f.produce(topic, 0, c.values...)
			e := f.completed(name, int64(len(c.values)), c.rows)
			f.want(c.want, fmt.Sprintf("SELECT string_agg((%s)::text, ',' ORDER BY id) FROM connector.t_%s WHERE id > 3", c.query, name))
			f.want(fmt.Sprint(int64(len(c.values))-c.rows), "SELECT count(*) FROM connector.dlq WHERE connector = $1", name)
			if c.letter != nil {
				letter := f.text(`SELECT concat_ws(' ', reason, sqlstate, message) FROM connector.dlq WHERE connector = $1 AND "offset" = $2`, name, 2+len(c.values))
				f.says(letter, c.letter...)
				if strings.Contains(letter, "canary") {
					t.Errorf("the letter shows the row: %s", letter)
				}
			}
			if c.says != "" {
				f.want("1", "SELECT count(*) FROM connector.log WHERE run_id = $1 AND position($2 IN message) > 0", e.RunID, c.says)
			}
		})
	}
}

// What takes the table itself away ends the run and changes nothing: it is never made anew under stored positions.
func TestATableThatPeopleTookAway(t *testing.T) {
	f := onFake(t)
	f.sidecar(nil)
	for i, c := range []struct {
		name, change, code string
		says               []string
		mend               string // after which the next run goes on
	}{
		{"dropped", "DROP TABLE @T", "table_missing", []string{"@N", "does not exist any more"}, ""},
		{"renamed", "ALTER TABLE @T RENAME TO elsewhere", "table_missing", []string{"@N"}, "ALTER TABLE connector.elsewhere RENAME TO @N"},
		{"replaced by a view", "ALTER TABLE @T RENAME TO stored; CREATE VIEW @T AS SELECT * FROM connector.stored", "table_not_ours", []string{"@N", "a view"}, "DROP VIEW @T; ALTER TABLE connector.stored RENAME TO @N"},
		{"replaced by somebody's table", "DROP TABLE @T; CREATE TABLE @T (n bigint)", "table_not_ours", []string{"@N", "highwater_owner"}, ""},
		{"unlogged", "ALTER TABLE @T SET UNLOGGED", "table_not_ours", []string{"@N", "unlogged"}, "ALTER TABLE @T SET LOGGED"},
		{"given to somebody", "CREATE ROLE @R; ALTER TABLE @T OWNER TO @R", "table_not_ours", []string{"@N", "highwater_owner"}, "ALTER TABLE @T OWNER TO highwater_owner; DROP ROLE @R"},
		{"without the unique index", "ALTER TABLE @T DROP CONSTRAINT @N__row_hash_key", "table_not_ours", []string{"@N", "_row_hash"}, "ALTER TABLE @T ADD CONSTRAINT @N__row_hash_key UNIQUE (_row_hash)"},
		{"a system column dropped", "ALTER TABLE @T DROP _source", "table_not_ours", []string{"@N", "_source"}, "ALTER TABLE @T ADD _source text"},
		{
			"with a trigger that swallows rows", "CREATE FUNCTION public.swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; CREATE TRIGGER gulp BEFORE INSERT ON @T FOR EACH ROW EXECUTE FUNCTION public.swallow()",
			"rows_vanished",
			[]string{"@N", "took 0 of the 2 rows", "trigger"},
			"DROP TRIGGER gulp ON @T",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := *f
			f.TB = t
			name := fmt.Sprintf("a%d", i)
			in := strings.NewReplacer("@T", "connector.t_"+name, "@N", "t_"+name, "@R", "e2e_somebody_"+name)
			topic := f.changed(name, "", in.Replace(c.change))
			f.produce(topic, 0, `{"n":4}`, `{"n":5}`)
			e := f.run(name)
			f.ends(e, "Failed", c.code)
			for _, w := range c.says {
				f.says(e.Message, in.Replace(w))
			}
			if e.Chunks != 0 || e.RecordsIn != 0 {
				t.Errorf("the run landed %+v", e)
			}
			if e.Hint == "" {
				t.Error("the run gives no hint")
			}
			f.want("3", "SELECT cursor->'offsets'->>'0' FROM connector.connector_cursor WHERE connector = $1", name)
			if c.mend == "" {
				return
			}
			f.exec(in.Replace(c.mend))
			f.completed(name, 2, 2)
			f.want("5", "SELECT count(*) FROM connector.t_"+name)
		})
	}
}

// A relation that has the table's name before the first run is left alone.
func TestATableOfSomebodyElse(t *testing.T) {
	f := onFake(t)
	f.sidecar(nil)
	topic := f.topic("theirs", 1, nil)
	f.produce(topic, 0, `{"n":1}`)
	f.declare("theirs", topic, "")
	f.exec("CREATE TABLE connector.t_theirs (n bigint)")
	e := f.run("theirs")
	f.ends(e, "Failed", "table_not_ours", "t_theirs", "highwater_owner")
	f.says(e.Hint, "RENAME", "spec.name")
	f.want("0", "SELECT count(*) FROM connector.t_theirs")
	f.exec("ALTER TABLE connector.t_theirs RENAME TO their_own")
	f.completed("theirs", 1, 1)
	f.exec("DELETE FROM connector.manifest")
	f.want("0", "SELECT count(*) FROM connector.their_own")
}
