package build

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"highwater/queue/land"
	"highwater/sql/table"
	"highwater/tests/harness"
)

// ground is a database in which messages land, each case through a connector with a table of its own.
type ground struct {
	pool   *pgxpool.Pool
	lander *land.Lander
	made   int
}

func newGround(t *testing.T) *ground {
	pool := harness.Pool(t, harness.Database(t))
	return &ground{pool: pool, lander: land.New(pool, land.Options{})}
}

func (g *ground) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := g.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// text gives the one value of a query as text; NULL and no row are <none>.
func (g *ground) text(t *testing.T, sql string, args ...any) string {
	t.Helper()
	var v *string
	err := g.pool.QueryRow(t.Context(), sql, args...).Scan(&v)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatalf("%s: %v", sql, err)
	}
	if v == nil {
		return "<none>"
	}
	return *v
}

// field is one connector's part of the ground.
type field struct {
	*ground
	run   land.Run
	shape *table.Shape
	next  int64
}

// claimed makes a connector whose run is claimed and planned for partition 0, up to the message number target.
func (g *ground) claimed(t *testing.T, target int) *field {
	t.Helper()
	g.made++
	name := fmt.Sprintf("case%d", g.made)
	f := &field{ground: g, run: land.Run{
		ID: uuid.New(), Connector: name, ConnectorID: uuid.New(), TenantID: 1, Table: "t_" + name, Fence: 1, Topic: "acme." + name,
		TopicID: uuid.New(), MappingVersion: 1,
	}}
	r := &f.run
	g.exec(t, `INSERT INTO connector._endpoint (connector_id, connector, tenant_id, table_name, fence, lease_run, lease_sidecar, lease_until)
		VALUES ($1, $2, 1, $3, $4, $5, 'test', clock_timestamp() + interval '1 hour')`, r.ConnectorID, name, r.Table, r.Fence, r.ID)
	g.exec(t, `INSERT INTO connector._run (run_id, connector_id, connector, tenant_id, status, started_by, requested_by)
		VALUES ($1, $2, $3, 1, 'Running', 'manual', 'test')`, r.ID, r.ConnectorID, name)
	g.exec(t, `INSERT INTO connector._cursor (connector_id, partition, tenant_id, next_offset, fence) VALUES ($1, 0, 1, 0, $2)`, r.ConnectorID, r.Fence)
	g.exec(t, `INSERT INTO connector._run_partition (run_id, partition, tenant_id, topic, start_offset, target_offset, next_offset)
		VALUES ($1, 0, 1, $2, 0, $3, 0)`, r.ID, r.Topic, target)
	return f
}

// land builds the values' chunks and lands them, as a run does: what was built for another shape is built anew.
func (f *field) land(t *testing.T, o Options, values ...string) {
	t.Helper()
	o.Topic, o.TopicID, o.RunID = f.run.Topic, f.run.TopicID, f.run.ID
	b := New(o)
	b.Add(batchOf(0, f.next, values...))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	end := f.next + int64(len(values))
	for b.Pending() {
		landed, err := f.lander.Land(ctx, f.run, cut(t, b, f.shape), f.shape)
		if landed.Shape != nil {
			f.shape = landed.Shape
		}
		switch {
		case errors.Is(err, land.ErrShapeChanged):
			b = New(o)
			at := f.at(t)
			b.Add(batchOf(0, at, values[len(values)-int(end-at):]...))
		case err != nil:
			t.Fatal(err)
		}
	}
	if f.next = f.at(t); f.next != end {
		t.Fatalf("the position is %d, want %d", f.next, end)
	}
}

func (f *field) at(t *testing.T) (next int64) {
	t.Helper()
	if err := f.pool.QueryRow(t.Context(), "SELECT next_offset FROM connector._cursor WHERE connector_id = $1", f.run.ConnectorID).Scan(&next); err != nil {
		t.Fatal(err)
	}
	return next
}

// byHand makes the connector's table through one message and alters it as people do; %s is the table.
func (f *field) byHand(t *testing.T, ddl ...string) {
	t.Helper()
	f.land(t, Options{}, `{"id_":9}`)
	for _, sql := range ddl {
		f.exec(t, strings.ReplaceAll(sql, "%s", table.Quoted(f.run.Table)))
	}
	shape, err := f.lander.Shape(t.Context(), f.run)
	if err != nil {
		t.Fatal(err)
	}
	f.shape = shape
}

// row gives what a message became in the table: its columns as JSON, without the connector's own and without nulls.
func (f *field) row(t *testing.T, offset int64) string {
	t.Helper()
	if f.shape == nil {
		return "<none>"
	}
	return f.text(t, `SELECT coalesce((SELECT jsonb_object_agg(e.key, e.value) FROM jsonb_each(to_jsonb(the_row.*)) AS e WHERE e.value <> 'null'
			AND e.key NOT IN ('id', '_row_hash', '_ingested_at', '_source', '_run_id', '_mapping_version', 'tenant_id')), '{}')::text
		FROM `+table.Quoted(f.run.Table)+` AS the_row WHERE the_row._source = $1`, fmt.Sprintf("kafka:%s:0:%d", f.run.Topic, offset))
}

// letter gives a message's dead letter, and tells whether it kept the message byte for byte.
func (f *field) letter(t *testing.T, offset int64) (says string, raw []byte) {
	t.Helper()
	at := fmt.Sprintf("%s:0:%d", f.run.Topic, offset)
	err := f.pool.QueryRow(t.Context(), `SELECT concat_ws(': ', reason, sqlstate, replace(message, $4, '')), raw FROM connector.dlq
		WHERE connector = $1 AND "offset" = $2 AND status = 'open' AND payload ->> 'file' = $3 AND (payload ->> 'line')::bigint = $2 AND starts_with(message, $4)`,
		f.run.Connector, offset, at, fmt.Sprintf("%s:%d — ", at, offset)).Scan(&says, &raw)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	return says, raw
}

// holds checks what one message became: a row of exactly this content, or a letter that says so and keeps its bytes.
func (f *field) holds(t *testing.T, offset int64, value, row, letter string) {
	t.Helper()
	got, says, raw := f.row(t, offset), "", []byte(nil)
	says, raw = f.letter(t, offset)
	if letter == "" {
		if says != "" {
			t.Errorf("message %d is a dead letter: %.300s", offset, says)
		}
		if got == "<none>" {
			t.Errorf("message %d has no row", offset)
		} else if f.text(t, "SELECT ($1::text::jsonb = $2::text::jsonb)::text", got, row) != "true" {
			t.Errorf("message %d became %.300s, want %.300s", offset, got, row)
		}
		return
	}
	if got != "<none>" {
		t.Errorf("message %d has a row too: %.300s", offset, got)
	}
	if !strings.Contains(says, letter) {
		t.Errorf("message %d: the letter says %.300q, want %q", offset, says, letter)
	}
	if value != "<null>" && string(raw) != value {
		t.Errorf("message %d: the letter keeps %.100q of %.100q", offset, raw, value)
	}
}

// verified checks the product's own books.
func (g *ground) verified(t *testing.T) {
	t.Helper()
	if broken := g.text(t, "SELECT string_agg(to_jsonb(v)::text, '; ') FROM connector.verify() AS v"); broken != "<none>" {
		t.Errorf("verify() returns %s", broken)
	}
}

// landings are the cases whose row is not simply what the message said, or of which only the server knows the end.
var landings = map[string]struct{ row, letter string }{
	"byte order mark":                 {row: `{"id_":1}`},
	"a boolean for a boolean's text":  {row: `{"l":"0"}`},
	"null":                            {row: `{"id_":1}`},
	"an instant":                      {row: `{"d":"2024-02-29T17:30:00-05:00"}`},
	"a scalar in a text column":       {row: `{"j":"true"}`},
	"an object in a text column":      {row: `{"j":"{\"a\": \"x\\ty\"}"}`},
	"a time beyond the range":         {letter: "Refused: 22008: "},
	"bytes in base64":                 {row: `{"b":"\\x00ff"}`},
	"bytes in base64 without padding": {row: `{"b":"\\x00ff"}`},
	"a bad value for such a type is the server's to refuse": {letter: "Refused: 22P02: "},
}

// Every case of cases_test.go through the one transaction into a server: alone, and in the middle of good messages of a
// table that is made for them and of one that is there.
func TestCasesLandAloneAndAmongGoodMessages(t *testing.T) {
	g := newGround(t)
	g.exec(t, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET TimeZone = ''America/New_York''', current_database()); END $$")
	g.pool.Reset()
	for _, c := range valueCases {
		t.Run(c.name, func(t *testing.T) {
			var ddl []string
			for _, column := range c.shape {
				name, typ, _ := strings.Cut(column, ":")
				ddl = append(ddl, fmt.Sprintf("ALTER TABLE %%s ADD COLUMN %s %s", name, typ))
			}
			made := c.shape != nil
			t.Run("alone", func(t *testing.T) { c.lands(t, g, ddl, made, false) })
			t.Run("among good messages of a table", func(t *testing.T) { c.lands(t, g, ddl, true, true) })
			if !made {
				t.Run("among good messages of a new table", func(t *testing.T) { c.lands(t, g, ddl, false, true) })
			}
		})
	}
	g.verified(t)
}

func (c valueCase) lands(t *testing.T, g *ground, ddl []string, made, among bool) {
	values, at := c.values, int64(len(c.values)-1)
	if among {
		values = append(append([]string{`{"id_":10}`, `{"id_":11}`}, c.values...), `{"id_":12}`, `{"id_":13}`)
		at += 2
	}
	target := len(values)
	if made {
		target++
		at++
	}
	f := g.claimed(t, target)
	if made {
		f.byHand(t, ddl...)
	}
	f.land(t, c.o, values...)
	last := c.values[len(c.values)-1]
	row, letter := last, c.letter
	if l, ok := landings[c.name]; ok {
		row, letter = l.row, l.letter
	}
	f.holds(t, at, last, row, letter)
	if among {
		for i, id := range []string{"10", "11"} {
			f.holds(t, at-int64(len(c.values))-1+int64(i), "", `{"id_":`+id+`}`, "")
		}
		for i, id := range []string{"12", "13"} {
			f.holds(t, at+1+int64(i), "", `{"id_":`+id+`}`, "")
		}
	}
}

// tableCase is one of the inputs of section B: a table that people made theirs, or a message that asks much of one.
type tableCase struct {
	ddl    []string // done by hand to a table with the column id_
	value  string
	row    string // "" with a letter
	letter string
}

func tableCases() map[string]tableCase {
	long := strings.Repeat("a", 70)
	one, _ := table.ColumnName(long + "1")
	two, _ := table.ColumnName(long + "2")
	var wide strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&wide, `,"k%d":1`, i)
	}
	typed := []string{"CREATE TYPE public.mood AS ENUM ('ok')", "ALTER TABLE %s ADD COLUMN u uuid, ADD COLUMN j jsonb, ADD COLUMN i inet, ADD COLUMN t timestamptz, ADD COLUMN e public.mood"}
	return map[string]tableCase{
		"long names that begin alike": {
			value: `{"` + long + `1":1,"` + long + `2":2}`,
			row:   `{"` + one + `":1,"` + two + `":2}`,
		},
		"2,000 columns": {value: `{"id_":1` + wide.String() + `}`, letter: `"layout": "document"`},
		"a table full of dropped columns": {
			ddl: []string{`DO $$ BEGIN
				EXECUTE 'ALTER TABLE %s ' || (SELECT string_agg('ADD COLUMN d' || i || ' int', ', ') FROM generate_series(1, 1590) AS i);
				EXECUTE 'ALTER TABLE %s ' || (SELECT string_agg('DROP COLUMN d' || i, ', ') FROM generate_series(1, 1590) AS i);
				END $$`},
			value: `{"id_":1,"new":1}`, letter: `"layout": "document"`,
		},
		"types that people chose": {
			ddl:   typed,
			value: `{"u":"5b0ab9c2-2bd0-4a0c-9e5c-93e7a0b2a1aa","j":"x","i":"10.0.0.1","t":"2024-03-01T00:00:00Z","e":"ok"}`,
			row:   `{"u":"5b0ab9c2-2bd0-4a0c-9e5c-93e7a0b2a1aa","j":"x","i":"10.0.0.1","t":"2024-02-29T19:00:00-05:00","e":"ok"}`,
		},
		"a bad uuid":      {ddl: []string{"ALTER TABLE %s ADD COLUMN u uuid"}, value: `{"u":"no uuid"}`, letter: "Refused: 22P02: "},
		"a bad enum":      {ddl: []string{"CREATE TYPE public.size AS ENUM ('S')", "ALTER TABLE %s ADD COLUMN s public.size"}, value: `{"s":"XXL"}`, letter: "Refused: 22P02: "},
		"a bad instant":   {ddl: []string{"ALTER TABLE %s ADD COLUMN t timestamptz"}, value: `{"t":"2024-02-31"}`, letter: "Refused: 22008: "},
		"a check":         {ddl: []string{"ALTER TABLE %s ADD CONSTRAINT positive CHECK (n > 0)"}, value: `{"n":-1}`, letter: `Refused: 23514: `},
		"generated":       {ddl: []string{"ALTER TABLE %s ADD COLUMN b int GENERATED ALWAYS AS (id_ * 2) STORED"}, value: `{"id_":1,"b":9}`, row: `{"id_":1,"b":2}`},
		"a default":       {ddl: []string{"ALTER TABLE %s ADD COLUMN x int DEFAULT 7"}, value: `{"id_":1}`, row: `{"id_":1,"x":7}`},
		"a dropped one":   {ddl: []string{"ALTER TABLE %s ADD COLUMN x int", "ALTER TABLE %s DROP COLUMN x"}, value: `{"id_":1,"x":3}`, row: `{"id_":1,"x":3}`},
		"a retyped one":   {ddl: []string{"ALTER TABLE %s ALTER COLUMN id_ TYPE text"}, value: `{"id_":1}`, row: `{"id_":"1"}`},
		"case by case":    {value: `{"Id":1,"iD":2,"ID":3}`, row: `{"Id":1,"iD":2,"ID":3}`},
		"nothing is run":  {value: `{"x\"; DROP TABLE connector.manifest; --":5}`, row: `{"x\"; DROP TABLE connector.manifest; --":5}`},
		"a trigger's row": {ddl: []string{"CREATE FUNCTION public.no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.id_ = 7 THEN RAISE 'seven'; END IF; RETURN NEW; END $$", "CREATE TRIGGER no BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION public.no()"}, value: `{"id_":7}`, letter: "Refused: P0001: "},
	}
}

func TestTablesThatPeopleMadeTheirsAloneAndAmongGoodMessages(t *testing.T) {
	g := newGround(t)
	g.exec(t, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET TimeZone = ''America/New_York''', current_database()); END $$")
	g.pool.Reset()
	for name, c := range tableCases() {
		t.Run(name, func(t *testing.T) {
			g.exec(t, "DROP TYPE IF EXISTS public.mood, public.size CASCADE; DROP FUNCTION IF EXISTS public.no() CASCADE")
			for _, among := range []bool{false, true} {
				values, at := []string{c.value}, int64(1)
				if among {
					values, at = []string{`{"note":"a"}`, `{"note":"b"}`, c.value, `{"note":"c"}`}, 3
				}
				f := g.claimed(t, len(values)+1)
				ddl := append([]string{"ALTER TABLE %s ADD COLUMN note text, ADD COLUMN n int"}, c.ddl...)
				if among && len(c.ddl) > 1 && strings.HasPrefix(c.ddl[0], "CREATE ") {
					ddl = append(ddl[:1:1], c.ddl[1:]...) // what is not the table's own is there already
				}
				f.byHand(t, ddl...)
				f.land(t, Options{}, values...)
				f.holds(t, at, c.value, c.row, c.letter)
				for i, v := range values {
					if o := int64(i) + 1; o != at && (f.row(t, o) == "<none>" || !strings.Contains(f.row(t, o), strings.Trim(v, "{}")[len(`"note":`):])) {
						t.Errorf("neighbour %d became %s", o, f.row(t, o))
					}
				}
			}
		})
	}
	g.verified(t)
	if g.text(t, "SELECT count(*)::text FROM connector.manifest") != "0" {
		t.Error("the manifest is gone")
	}
}

// Every record of a chunk fails alike: each is a letter with the server's code, none lands, the position moves on.
func TestNotOneRowFitsATableThatPeopleMadeTheirs(t *testing.T) {
	g := newGround(t)
	f := g.claimed(t, 101)
	f.byHand(t, "ALTER TABLE %s ADD COLUMN x int", "UPDATE %s SET x = 1", "ALTER TABLE %s ALTER COLUMN x SET NOT NULL")
	values := make([]string, 100)
	for i := range values {
		values[i] = fmt.Sprintf(`{"id_":%d}`, i+100)
	}
	f.land(t, Options{}, values...)
	if got := g.text(t, "SELECT concat_ws('|', count(*), min(sqlstate), max(sqlstate), min(reason)) FROM connector.dlq"); got != "100|23502|23502|Refused" {
		t.Errorf("letters: %s", got)
	}
	g.verified(t)
}

// Messages that each bring a hundred new fields: the table grows to its limit of 1,500 columns, what is beyond it is a letter
// that says what to do, and messages of old fields go on landing.
func TestATableGrowsToItsLimitAndTheRunGoesOn(t *testing.T) {
	g := newGround(t)
	values := make([]string, 21)
	for i := range 20 {
		var b strings.Builder
		for k := range 100 {
			fmt.Fprintf(&b, `,"k%d":%d`, 100*i+k, k)
		}
		values[i] = `{` + b.String()[1:] + `}`
	}
	values[20] = `{"k0":7}`
	f := g.claimed(t, len(values))
	f.land(t, Options{}, values...)
	letters := g.text(t, `SELECT string_agg("offset"::text, ',' ORDER BY "offset") FROM connector.dlq WHERE message LIKE '%"layout": "document"%'`)
	rows := g.text(t, "SELECT count(*)::text FROM "+table.Quoted(f.run.Table))
	if letters != "14,15,16,17,18,19" || rows != "15" {
		t.Errorf("letters %s, %s rows", letters, rows)
	}
	f.holds(t, 20, "", `{"k0":7}`, "")
	g.verified(t)
}
