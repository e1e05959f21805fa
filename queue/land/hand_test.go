package land

import (
	"errors"
	"strings"
	"testing"
	"time"

	"highwater/sql/table"
)

func TestWhatPeopleDoToTheTableBetweenChunks(t *testing.T) {
	for name, c := range map[string]struct {
		ddl     string
		columns []string
		alters  []table.Alter
		rows    [][]string
		want    error  // nil: the chunk lands as it is
		code    string // of an error that ends the run
		message string
	}{
		"a column that no message has":      {ddl: "ADD COLUMN x int DEFAULT 3"},
		"a column that the chunk would add": {ddl: "ADD COLUMN z text", columns: []string{"n", "z"}, alters: []table.Alter{{Column: "z", Field: "z", Type: "bigint"}}, want: ErrShapeChanged},
		"another type":                      {ddl: "ALTER COLUMN n TYPE text", want: ErrShapeChanged},
		"a dropped column":                  {ddl: "DROP COLUMN s", want: ErrShapeChanged},
		"a renamed column":                  {ddl: "RENAME COLUMN s TO s2", want: ErrShapeChanged},
		"a default":                         {ddl: "ALTER COLUMN s SET DEFAULT 'x'", want: ErrShapeChanged},
		"a column made generated":           {ddl: "DROP COLUMN s, ADD COLUMN s text GENERATED ALWAYS AS ('x') STORED", want: ErrShapeChanged},
		"statistics":                        {ddl: "ALTER COLUMN n SET STATISTICS 500"},
		"not null":                          {ddl: "ALTER COLUMN n SET NOT NULL"},
		"an index":                          {ddl: "ADD CONSTRAINT u UNIQUE (n)"},
		"widened by hand":                   {ddl: "ALTER COLUMN n TYPE numeric", alters: []table.Alter{{Column: "n", Field: "n", Type: "numeric", Widen: true}}, want: ErrShapeChanged},
		"renamed table":                     {ddl: "RENAME TO t_elsewhere", code: "table_missing", message: "reset_cursor"},
		"dropped table":                     {ddl: "!DROP TABLE connector.t_orders", code: "table_missing"},
		"dropped and altered by the chunk":  {ddl: "!DROP TABLE connector.t_orders", alters: []table.Alter{{Column: "z", Field: "z", Type: "bigint"}}, code: "table_missing"},
		"made anew by somebody else":        {ddl: "!DROP TABLE connector.t_orders; CREATE TABLE connector.t_orders (LIKE connector._log)", code: "table_not_ours", message: "does not belong to highwater_owner"},
		"a view in its place":               {ddl: "!ALTER TABLE connector.t_orders RENAME TO t_old; CREATE VIEW connector.t_orders AS SELECT * FROM connector.t_old", code: "table_not_ours", message: "is a view"},
		"an unlogged table":                 {ddl: "SET UNLOGGED", code: "table_not_ours", message: "unlogged"},
		"another owner":                     {ddl: "OWNER TO postgres", code: "table_not_ours", message: "does not belong"},
		"no unique hash":                    {ddl: "DROP CONSTRAINT t_orders__row_hash_key", code: "table_not_ours", message: "no unique index on _row_hash"},
		"a system column of another type":   {ddl: "ALTER COLUMN _source TYPE varchar(100)", code: "table_not_ours", message: "_source"},
		"a system column less":              {ddl: "DROP COLUMN _run_id", code: "table_not_ours", message: "_run_id"},
		"another name for the hash's index": {ddl: "!ALTER INDEX connector.t_orders__row_hash_key RENAME TO other", rows: append(numbered(0, 1), numbered(50, 4)...)},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, Options{})
			b.started(2)
			if ddl, ok := strings.CutPrefix(c.ddl, "!"); ok {
				b.exec(ddl)
			} else {
				b.exec("ALTER TABLE connector.t_orders " + ddl)
			}
			if c.columns == nil {
				c.columns = []string{"n", "s"}
			}
			if c.rows == nil {
				c.rows = numbered(2, 5)
			}
			ch := b.chunk(0, c.columns, c.rows)
			ch.Alters = c.alters
			before := b.shape
			landed, err := b.land(ch)
			switch {
			case c.code != "":
				e := wantError(t, err, c.code, "")
				if !strings.Contains(e.Message+e.Hint, c.message) || b.position(0) != 2 {
					t.Errorf("message %s, hint %s, position %d", e.Message, e.Hint, b.position(0))
				}
			case c.want != nil:
				if !errors.Is(err, c.want) || landed.Shape == nil || landed.Shape == before || b.position(0) != 2 {
					t.Errorf("got %v with shape %v, position %d", err, landed.Shape, b.position(0))
				}
			case err != nil:
				t.Error(err)
			default:
				b.audit()
			}
		})
	}
}

func TestADroppedTableIsMissingOnlyWhereItWasMade(t *testing.T) {
	b := setup(t, Options{})
	if shape, err := b.lander.Shape(t.Context(), b.run); shape != nil || err != nil {
		t.Errorf("before the first row: %v, %v", shape, err)
	}
	b.started(1)
	b.exec("DROP TABLE connector.t_orders")
	_, err := b.lander.Shape(t.Context(), b.run)
	e := wantError(t, err, "table_missing", "")
	if !strings.Contains(e.Hint, "SELECT connector.reset_cursor('orders');") || e.Retryable {
		t.Errorf("hint %s, retryable %v", e.Hint, e.Retryable)
	}
	b.run.Made, b.shape = true, nil
	c := b.chunk(0, []string{"n", "s"}, numbered(1, 1))
	c.Alters = simple
	_, err = b.land(c)
	wantError(t, err, "table_missing", "")
}

func TestATableThatAppearsBeforeItIsMadeIsLookedAt(t *testing.T) {
	for name, c := range map[string]struct{ ddl, code string }{
		"somebody else's":     {"CREATE TABLE connector.t_orders (a int)", "table_not_ours"},
		"a name of its index": {"CREATE TABLE connector.t_orders_pkey (a int)", "database_error"},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, Options{})
			b.exec(c.ddl)
			ch := b.chunk(0, []string{"n", "s"}, numbered(0, 1))
			ch.Alters = simple
			_, err := b.land(ch)
			var e *Error
			if !errors.As(err, &e) || e.Code != c.code {
				t.Errorf("got %v", err)
			}
			if one[bool](b, "SELECT table_made FROM connector._endpoint") {
				t.Error("the table counts as made")
			}
		})
	}
	t.Run("ours, made by the sidecar before", func(t *testing.T) {
		b := setup(t, Options{})
		b.started(2)
		b.shape = nil
		ch := b.chunk(0, []string{"n", "s"}, numbered(2, 1))
		ch.Alters = simple
		if landed, err := b.land(ch); !errors.Is(err, ErrShapeChanged) || landed.Shape == nil {
			t.Errorf("got %v", err)
		}
		ch.Alters = nil
		b.must(ch)
	})
}

func TestNewColumnsComeWithTheirRowsAndAreSaid(t *testing.T) {
	b := setup(t, Options{})
	b.started(1)
	odd := []string{`a "quoted" name`, "with space", "CAPITALS", "MONTANT_€", "select", `x"; DROP TABLE connector.t_orders; --`, "new\nline", `back\slash`, "%s$1?", "'"}
	c := b.chunk(0, odd, [][]string{row("1", "2", "3", "4", "5", "6", "7", "8", "9", "10")})
	for _, name := range odd {
		c.Alters = append(c.Alters, table.Alter{Column: name, Field: name, Type: "bigint"})
	}
	landed := b.must(c)
	if len(landed.Said) != 1 || !strings.Contains(landed.Said[0], `"MONTANT_€" bigint`) || !strings.Contains(landed.Said[0], `"a ""quoted"" name" bigint`) {
		t.Errorf("said %q", landed.Said)
	}
	got := one[string](b, "SELECT string_agg(attname, '|' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'connector.t_orders'::regclass AND attnum > 9")
	if got != strings.Join(odd, "|") {
		t.Errorf("columns are %q", got)
	}
	if got := one[int64](b, `SELECT "x""; DROP TABLE connector.t_orders; --" FROM connector.t_orders WHERE "CAPITALS" = 3`); got != 6 {
		t.Errorf("the value is %d", got)
	}
	if n := one[int64](b, "SELECT count(*) FROM connector._column WHERE added_by_run = $1", b.run.ID); n != 12 {
		t.Errorf("%d columns are in the history", n)
	}
	name, _ := table.ColumnName(strings.Repeat("é", 60))
	c = b.chunk(0, []string{name}, [][]string{row("1")})
	c.Alters = []table.Alter{{Column: name, Field: strings.Repeat("é", 60), Type: "text"}}
	b.must(c)
	if got := one[string](b, "SELECT field FROM connector._column WHERE column_name = $1", name); got != strings.Repeat("é", 60) {
		t.Errorf("the field is %s", got)
	}
}

func TestAnOddTableNameIsQuotedEverywhere(t *testing.T) {
	b := setup(t, Options{})
	b.run.Table = "t_" + `Odd 'é"; x%`
	b.plan2()
	b.started(3)
	b.must(b.chunk(0, []string{"n", "s"}, numbered(2, 3)))
	b.exec(`ALTER TABLE connector."t_Odd 'é""; x%" ADD CHECK (n <> 11)`)
	b.reshape()
	if landed := b.must(b.chunk(0, []string{"n", "s"}, numbered(10, 3))); landed.Letters != 1 || landed.Written != 2 {
		t.Errorf("landed %+v", landed)
	}
}

// plan2 takes over a change of b.run's table.
func (b *bundle) plan2() {
	b.exec("UPDATE connector._endpoint SET table_name = $1", b.run.Table)
}

func TestWideningKeepsEveryDigitAndTheDate(t *testing.T) {
	b := setup(t, Options{})
	c := b.chunk(0, []string{"n", "d"}, [][]string{row("9223372036854775807", "1.5")})
	c.Alters = []table.Alter{{Column: "n", Field: "n", Type: "bigint"}, {Column: "d", Field: "d", Type: "numeric(18,4)"}}
	b.must(c)
	b.exec("UPDATE connector._column SET added_at = '2020-01-01'")
	c = b.chunk(0, []string{"n", "d"}, [][]string{row("1e400", "1.23456789")})
	c.Alters = []table.Alter{{Column: "n", Field: "n", Type: "numeric", Widen: true}, {Column: "d", Field: "d", Type: "numeric", Widen: true}}
	landed := b.must(c)
	if len(landed.Said) != 2 || !strings.Contains(landed.Said[0], `widened column "n" from bigint to numeric in `) {
		t.Errorf("said %q", landed.Said)
	}
	if got := one[string](b, "SELECT string_agg(concat_ws(' ', length(n::text), d), ', ' ORDER BY id) FROM connector.t_orders"); got != "19 1.5000, 401 1.23456789" {
		t.Errorf("rows are %s", got)
	}
	if got := one[string](b, "SELECT string_agg(data_type || ' ' || (added_at = '2020-01-01'), ', ') FROM connector._column"); got != "numeric true, numeric true" {
		t.Errorf("history is %s", got)
	}
}

func TestAWideningThatTheServerForbidsMakesTheColumnFrozen(t *testing.T) {
	for name, c := range map[string]struct {
		ddl, says string
		o         Options
	}{
		"view":          {ddl: "CREATE VIEW public.v AS SELECT n FROM connector.t_orders", says: "cannot alter type of a column used by a view or rule (SQLSTATE 0A000)"},
		"check":         {ddl: "ALTER TABLE connector.t_orders ADD CHECK (n & 1 IN (0, 1))", says: "SQLSTATE 42883"},
		"policy":        {ddl: "CREATE POLICY p ON connector.t_orders USING (n > 0)", says: "SQLSTATE 0A000"},
		"event trigger": {ddl: "CREATE FUNCTION public.no() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not on a Friday'; END $$; CREATE EVENT TRIGGER no ON ddl_command_start WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION public.no()", says: "not on a Friday (SQLSTATE P0001)"},
		"many rows":     {ddl: "SELECT 1", says: `ALTER TABLE "connector"."t_orders" ALTER COLUMN "n" TYPE numeric USING "n"::numeric`, o: Options{RewriteRowsMax: 3}},
		"many analyzed": {ddl: "ANALYZE connector.t_orders", says: "about 5 rows", o: Options{RewriteRowsMax: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, c.o)
			b.started(5)
			b.exec(c.ddl)
			b.reshape()
			ch := b.chunk(0, []string{"n", "s"}, [][]string{row("1.5", "a")})
			ch.Alters = []table.Alter{{Column: "n", Field: "n", Type: "numeric", Widen: true}}
			landed, err := b.land(ch)
			if !errors.Is(err, ErrShapeChanged) {
				t.Fatalf("got %v", err)
			}
			for range 2 {
				col, _ := landed.Shape.Column("n")
				if !strings.Contains(col.Frozen, c.says) || col.Fit(table.Number, []byte("1.5")) != table.Conflicts || col.Fit(table.Int, []byte("1")) != table.Fits {
					t.Errorf("the column is %+v", col)
				}
				b.reshape() // the run remembers, the shape is read anew
				landed.Shape = b.shape
			}
			b.again()
			b.reshape()
			if col, _ := b.shape.Column("n"); col.Frozen != "" {
				t.Error("the next run does not try again")
			}
			b.unmoved(0, 5)
		})
	}
}

func TestAColumnThatCannotBeAddedLeavesNoRoom(t *testing.T) {
	b := setup(t, Options{})
	b.started(1)
	b.exec(`DO $$ BEGIN FOR i IN 1..1590 LOOP
		EXECUTE format('ALTER TABLE connector.t_orders ADD COLUMN d%s int', i); EXECUTE format('ALTER TABLE connector.t_orders DROP COLUMN d%s', i);
		END LOOP; END $$`)
	b.reshape()
	n, why := b.shape.Room()
	if n != 1 || why != "" {
		t.Errorf("room for %d, %s", n, why)
	}
	c := b.chunk(0, []string{"n", "s", "x", "y"}, [][]string{row("7", "a", "1", "2")})
	c.Alters = []table.Alter{{Column: "x", Field: "x", Type: "bigint"}, {Column: "y", Field: "y", Type: "bigint"}}
	landed, err := b.land(c)
	if !errors.Is(err, ErrShapeChanged) {
		t.Fatalf("got %v", err)
	}
	if n, why := landed.Shape.Room(); n != 0 || !strings.Contains(why, "54011") {
		t.Errorf("room for %d, %s", n, why)
	}
}

func TestAReaderOfTheTableWaitsNoLongerThanTheLockLimit(t *testing.T) {
	b := setup(t, Options{DDLTimeout: 300 * time.Millisecond, WaitMax: time.Second})
	b.started(1)
	report, reader := b.session(), b.session()
	do(t, report, "BEGIN; SELECT FROM connector.t_orders")
	c := b.chunk(0, []string{"n", "s", "z"}, [][]string{row("7", "a", "1")})
	c.Alters = []table.Alter{{Column: "z", Field: "z", Type: "bigint"}}
	result := make(chan error, 1)
	go func() {
		_, err := b.lander.Land(t.Context(), b.run, c, b.shape)
		result <- err
	}()
	longest := time.Duration(0)
	var err error
	for done := false; !done; {
		select {
		case err = <-result:
			done = true
		default:
			begun := time.Now()
			do(t, reader, "SELECT FROM connector.t_orders")
			longest = max(longest, time.Since(begun))
		}
	}
	if longest > 600*time.Millisecond {
		t.Errorf("a reader waited %s", longest)
	}
	e := wantError(t, err, "ddl_lock_timeout", "55P03")
	if !e.Retryable || !strings.Contains(e.Hint, `'"connector"."t_orders"'::regclass`) {
		t.Errorf("retryable %v, hint %s", e.Retryable, e.Hint)
	}
	b.unmoved(1, 1)
	do(t, report, "COMMIT")
	b.must(c)
}
