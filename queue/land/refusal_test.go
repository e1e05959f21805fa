package land

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"highwater/sql/table"
)

// refusals are the dead letters of a connector as "offset sqlstate", in offset order.
func (b *bundle) refusals() string {
	b.Helper()
	return one[string](b, `SELECT coalesce(string_agg("offset" || ' ' || coalesce(sqlstate, '-'), ', ' ORDER BY partition, "offset"), '') FROM connector._dlq`)
}

func TestARowThatTheDatabaseRefusesIsSetAsideAndItsNeighboursLand(t *testing.T) {
	raise := func(when, state, more string) string {
		return `CREATE FUNCTION public.guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.n % 10 = 7 THEN RAISE EXCEPTION 'seven is not welcome: %', NEW.n USING ERRCODE = '` + state + `'; END IF; RETURN NEW; END $$;
			CREATE ` + when + ` INSERT ON connector.t_orders ` + more + ` FOR EACH ROW EXECUTE FUNCTION public.guard()`
	}
	for name, c := range map[string]struct{ ddl, state, says string }{
		"check":                       {"ALTER TABLE connector.t_orders ADD CONSTRAINT no_seven CHECK (n % 10 <> 7)", "23514", `constraint "no_seven"`},
		"before trigger":              {raise("TRIGGER guard BEFORE", "P0001", ""), "P0001", "seven is not welcome: 17"},
		"after trigger":               {raise("TRIGGER guard AFTER", "P0001", ""), "P0001", "seven is not welcome: 17"},
		"trigger's own code":          {raise("TRIGGER guard BEFORE", "ACME7", ""), "ACME7", "seven is not welcome"},
		"deferred constraint trigger": {raise("CONSTRAINT TRIGGER guard AFTER", "P0001", "DEFERRABLE INITIALLY DEFERRED"), "P0001", "seven is not welcome"},
		"foreign key":                 {"CREATE TABLE public.known (n bigint PRIMARY KEY); INSERT INTO public.known SELECT i FROM generate_series(0, 999) AS i WHERE i % 10 <> 7; GRANT SELECT, REFERENCES ON public.known TO highwater_owner; ALTER TABLE connector.t_orders ADD CONSTRAINT known FOREIGN KEY (n) REFERENCES public.known", "23503", `constraint "known"`},
		"deferred foreign key":        {"CREATE TABLE public.known (n bigint PRIMARY KEY); INSERT INTO public.known SELECT i FROM generate_series(0, 999) AS i WHERE i % 10 <> 7; GRANT SELECT, REFERENCES ON public.known TO highwater_owner; ALTER TABLE connector.t_orders ADD CONSTRAINT known FOREIGN KEY (n) REFERENCES public.known DEFERRABLE INITIALLY DEFERRED", "23503", `constraint "known"`},
		"not null":                    {"ALTER TABLE connector.t_orders ADD COLUMN x int GENERATED ALWAYS AS (CASE WHEN n % 10 <> 7 THEN 1 END) STORED NOT NULL", "23502", `column "x"`},
		"domain":                      {"CREATE DOMAIN public.unlucky AS bigint CHECK (VALUE % 10 <> 7); ALTER TABLE connector.t_orders ALTER COLUMN n TYPE public.unlucky", "23514", `constraint "unlucky_check"`},
		"cast":                        {"CREATE TYPE public.words AS ENUM ('none'); DO $$ BEGIN FOR i IN 0..99 LOOP IF i % 10 <> 7 THEN EXECUTE format('ALTER TYPE public.words ADD VALUE %L', 'text ' || i); END IF; END LOOP; END $$; ALTER TABLE connector.t_orders ALTER COLUMN s TYPE public.words USING 'none'", "22P02", `column "s"`},
		"unique":                      {"CREATE UNIQUE INDEX one_seven ON connector.t_orders ((CASE WHEN n % 10 = 7 THEN 7 END)); INSERT INTO connector.t_orders (_row_hash, tenant_id, n) VALUES ('by hand', 1, 107)", "23505", `constraint "one_seven"`},
		"exclusion":                   {"ALTER TABLE connector.t_orders ADD CONSTRAINT apart EXCLUDE ((CASE WHEN n % 10 = 7 THEN 7 END) WITH =); INSERT INTO connector.t_orders (_row_hash, tenant_id, n) VALUES ('by hand', 1, 107)", "23P01", `constraint "apart"`},
		"division in a default":       {"CREATE FUNCTION public.part(bigint) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT 1 / (($1 - 7) % 10)'; ALTER TABLE connector.t_orders ADD COLUMN x bigint GENERATED ALWAYS AS (public.part(n)) STORED", "22012", "division by zero"},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, Options{})
			b.started(2)
			b.exec(c.ddl)
			b.reshape()
			landed := b.must(b.chunk(0, []string{"n", "s"}, numbered(2, 38)))
			if landed.Written != 34 || landed.Letters != 4 {
				t.Errorf("landed %+v", landed)
			}
			if got, want := b.refusals(), fmt.Sprintf("7 %[1]s, 17 %[1]s, 27 %[1]s, 37 %[1]s", c.state); got != want {
				t.Errorf("refused were %s, want %s", got, want)
			}
			got := one[string](b, `SELECT concat_ws('|', reason, message, payload->>'file', key, raw = 'x'::bytea) FROM connector._dlq WHERE "offset" = 17`)
			if !strings.HasPrefix(got, "Refused|acme.orders:0:17:17 — the database refused this row: ") || !strings.Contains(got, c.says) || strings.Contains(got, "Failing row") {
				t.Errorf("the dead letter says %s", got)
			}
		})
	}
}

// reshape takes over what was done to the table by hand.
func (b *bundle) reshape() {
	b.Helper()
	shape, err := b.lander.Shape(b.Context(), b.run)
	if err != nil {
		b.Fatal(err)
	}
	b.shape = shape
}

func TestARowTooBigForAPageIsFoundAlthoughCopyNamesAnother(t *testing.T) {
	b := setup(t, Options{})
	var alters []table.Alter
	var columns []string
	for i := range 1200 {
		columns = append(columns, fmt.Sprint("c", i))
		alters = append(alters, table.Alter{Column: columns[i], Field: columns[i], Type: "bigint"})
	}
	rows := [][]string{}
	for i := range 60 {
		values := make([]string, len(columns))
		for j := range values {
			if values[j] = `\N`; j < 3 || i%20 == 7 {
				values[j] = fmt.Sprint(1000*i + j)
			}
		}
		rows = append(rows, values)
	}
	c := b.chunk(0, columns, rows)
	c.Alters = alters
	landed := b.must(c)
	if landed.Written != 57 || b.refusals() != "7 54000, 27 54000, 47 54000" {
		t.Errorf("landed %d, refused were %s", landed.Written, b.refusals())
	}
}

func TestRowsThatReferToEachOtherLandWhateverTheirOrder(t *testing.T) {
	b := setup(t, Options{})
	b.started(2)
	b.exec("ALTER TABLE connector.t_orders ADD COLUMN parent bigint; ALTER TABLE connector.t_orders ADD UNIQUE (n); ALTER TABLE connector.t_orders ADD FOREIGN KEY (parent) REFERENCES connector.t_orders (n)")
	b.reshape()
	var rows [][]string
	for i := 2; i < 40; i++ {
		parent := fmt.Sprint((i + 1) % 40)
		if i == 20 {
			parent = "1000"
		}
		rows = append(rows, row(fmt.Sprint(i), parent))
	}
	landed := b.must(b.chunk(0, []string{"n", "parent"}, rows))
	// 2..18 hang on 19, and 19 on 20, which refers to nothing: a chain that ends nowhere cannot land, 21..39 can.
	if landed.Letters != 19 || landed.Written != 19 {
		t.Errorf("landed %+v, refused %s", landed, b.refusals())
	}
}

func TestPastTheLimitOfRefusalsTheChunkIsCommittedInParts(t *testing.T) {
	for name, c := range map[string]struct {
		filtered, noRecord int64 // at the chunk's end
		commits            int
	}{
		"all offsets hold rows":      {0, 0, 8},
		"one kind of other offsets":  {5, 0, 8},
		"two kinds of other offsets": {3, 2, 8},
		"parting would need a guess": {3, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			commits := 0
			b := setup(t, Options{RefusalsMax: 4, Failpoint: func(step string) {
				if step == "committed" {
					commits++
				}
			}})
			b.started(1)
			b.exec("ALTER TABLE connector.t_orders ADD CHECK (n = 0 OR n % 4 <> 0)")
			b.reshape()
			commits = 0
			ch := b.chunk(0, []string{"n", "s"}, numbered(1, 79))
			a := &ch.Advances[0]
			a.To, a.Filtered, a.NoRecord = a.To+c.filtered+c.noRecord, c.filtered, c.noRecord
			if c.commits == 1 { // what is no row lies at both ends
				for i := range ch.Rows {
					ch.Rows[i].Offset += 2
				}
			}
			landed := b.must(ch)
			if landed.Written != 60 || landed.Letters != 19 || b.position(0) != 80+c.filtered+c.noRecord {
				t.Errorf("landed %+v, position %d", landed, b.position(0))
			}
			if len(landed.Partitions) != 1 || landed.Partitions[0].Letters != 19 {
				t.Errorf("partitions %+v", landed.Partitions)
			}
			if commits != c.commits && (c.commits == 1 || commits < 4) {
				t.Errorf("%d commits", commits)
			}
			if f := b.counted("filtered"); f != c.filtered {
				t.Errorf("%d were counted as filtered", f)
			}
		})
	}
}

func TestAChunkWithoutOneGoodRowIsAllDeadLetters(t *testing.T) {
	b := setup(t, Options{})
	b.started(1)
	b.exec("ALTER TABLE connector.t_orders ADD COLUMN x int NOT NULL DEFAULT 1; ALTER TABLE connector.t_orders ALTER COLUMN x DROP DEFAULT")
	b.reshape()
	landed := b.must(b.chunk(0, []string{"n", "s"}, numbered(1, 500)))
	if landed.Letters != 500 || landed.Written != 0 {
		t.Errorf("landed %+v", landed)
	}
}

func TestAStopIsObeyedBetweenTheParts(t *testing.T) {
	b := setup(t, Options{})
	b.started(1)
	b.exec("ALTER TABLE connector.t_orders ADD CHECK (n = 0)")
	b.reshape()
	stop := make(chan struct{})
	b.run.Stop = stop
	commits := 0
	b.lander.o.Failpoint = func(step string) {
		if step == "committed" {
			if commits++; commits == 2 {
				close(stop)
			}
		}
	}
	landed, err := b.land(b.chunk(0, []string{"n", "s"}, numbered(1, 500)))
	if !errors.Is(err, ErrStopped) || commits != 2 || landed.Letters == 0 || b.position(0) != 1+landed.Letters {
		t.Errorf("got %v after %d commits with %d letters, position %d", err, commits, landed.Letters, b.position(0))
	}
	b.audit()
}

func TestALetterMetAgainCountsTheAttempt(t *testing.T) {
	b := setup(t, Options{letterBytesHold: 2000})
	letters := func() *Chunk {
		c := b.chunk(1, nil, nil)
		for i := range 20 {
			c.Letters = append(c.Letters, Letter{
				Partition: 1, Offset: int64(i), Reason: "MalformedSource", Message: "cut\noff", Raw: Source{Value: []byte(`{"a"`)},
			})
		}
		c.Advances[0].To = 20
		return c
	}
	b.must(letters())
	if n := b.rows("true"); b.shape != nil || n != 0 {
		t.Error("a chunk without rows made a table")
	}
	b.exec("UPDATE connector._dlq SET status = 'discarded'")
	for _, id := range []string{"a topic id", "none"} {
		b.again()
		if id == "none" {
			b.run.TopicID = [16]byte{}
			b.must(letters())
			b.again()
			b.run.TopicID = [16]byte{}
		}
		b.must(letters())
		got := one[string](b, `SELECT string_agg(DISTINCT concat_ws('|', attempts, status, reason, message, run_id = $1), ' ') FROM connector._dlq WHERE "offset" = 3 AND run_id = $1`, b.run.ID)
		if got != "2|open|MalformedSource|acme.orders:1:3:3 — cut off|t" {
			t.Errorf("with %s the letter is %s", id, got)
		}
	}
	if n := one[int64](b, "SELECT count(*) FROM connector._dlq"); n != 40 {
		t.Errorf("there are %d letters", n)
	}
}

func TestADeadLetterKeepsItsMessageWhateverTheBytes(t *testing.T) {
	b := setup(t, Options{})
	long := strings.Repeat("é", 9000)
	c := b.chunk(0, nil, nil)
	c.Advances[0].To = 9
	sizes := map[int]int{7: 40_000_000, 8: 5}
	for i, raw := range []Source{
		{Key: []byte("clé"), Value: []byte(`{"a":"\u0000"}`), Headers: []Header{{Key: "h", Value: []byte("v")}, {Key: "h", Value: nil}, {Key: "b\x00", Value: []byte{0xff, 0}}}},
		{Key: []byte{0xff}, Value: []byte{0xff, 0xfe}},
		{Value: []byte("a\x00b")},
		{Value: []byte(long)},
		{Value: []byte{}},
		{Key: []byte("gone")},
		{Value: []byte(strings.Repeat("x", 1<<20+1))},
		{Value: []byte(strings.Repeat("y", 1<<20))}, // the beginning of one that is too large
		{Value: []byte("whole")},
	} {
		c.Letters = append(c.Letters, Letter{Partition: 0, Offset: int64(i), Reason: "MalformedSource", Message: "bad \x00\xff\n" + strings.Repeat("long ", 200), Raw: raw, Size: sizes[i], Tombstone: i == 5})
	}
	b.must(c)
	for offset, want := range []string{
		`clé|{"a":"\u0000"}||[["h", "v"], ["h", null], ["b�", {"base64": "/wA="}]]|14`,
		"base64:/w==|//4=|base64||2",
		"|YQBi|base64||3",
		"|" + strings.Repeat("é", 8192) + "|||18000",
		"||||0",
		"gone|none||null",
		"|" + strings.Repeat("x", 8192) + "|||null",
		"|" + strings.Repeat("y", 8192) + "|||null",
		"|whole|||5",
	} {
		got := one[string](b, `SELECT concat(key, '|', coalesce(payload->'raw'->>0, 'none'), '|', payload->>'encoding', '|', headers, CASE WHEN "offset" = 5 THEN '' ELSE '|' END, coalesce(length(raw)::text, 'null'))
			FROM connector._dlq WHERE "offset" = $1`, offset)
		if got != want {
			t.Errorf("offset %d: %.200s, want %.200s", offset, got, want)
		}
		if n := one[int](b, `SELECT (payload->>'line')::int FROM connector._dlq WHERE "offset" = $1`, offset); n != offset {
			t.Errorf("line %d", n)
		}
	}
	if n := one[int](b, "SELECT max(length(message)) FROM connector._dlq"); n > messageMax+50 {
		t.Errorf("a message has %d characters", n)
	}
}

func TestLineOfReadsOnlyOurOwnCopy(t *testing.T) {
	for where, want := range map[string]int{
		"COPY t_orders, line 3":                                               3,
		"COPY t_orders, line 12, column n: \"x\"":                             12,
		"PL/pgSQL function f() line 4 at RAISE\nCOPY t_orders, line 9":        9,
		"COPY other, line 2\nSQL statement \"COPY …\"\nCOPY t_orders, line 7": 7,
		"COPY other, line 2":                                                  0,
		"PL/pgSQL function f() line 4 at RAISE":                               0,
		"":                                                                    0,
		"COPY t_orders, line 99999999999999999999":                            0,
	} {
		if got := lineOf(pgError("22P02", where), "t_orders"); got != want {
			t.Errorf("%q: line %d, want %d", where, got, want)
		}
	}
}

func TestHalvesComeToTheSameAsTheWhole(t *testing.T) {
	b := &bundle{TB: t, next: map[int32]int64{0: 10}}
	c := b.chunk(0, []string{"n"}, numbered(0, 9))
	c.Advances[0].To += 3
	c.Letters = []Letter{{Offset: 20}}
	c.Advances[0].Filtered = 2
	c.Alters = simple
	for range 3 {
		first, second := c.halves()
		if first == nil {
			t.Fatal("it cannot be parted")
		}
		for _, h := range []*Chunk{first, second} {
			if err := h.Check(); err != nil {
				t.Error(err)
			}
		}
		if len(first.Rows)+len(second.Rows) != len(c.Rows) || len(second.Alters) > 0 || first.ID == second.ID || first.Advances[0].To != second.Advances[0].From {
			t.Errorf("halves %+v and %+v", first.Advances, second.Advances)
		}
		c = first
	}
	if !slices.Equal(c.Alters, simple) {
		t.Error("the first part does not make the columns")
	}
}
