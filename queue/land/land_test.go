package land

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"highwater/sql/table"
)

func TestFirstChunkMakesTheTableAsTheContractSaysIt(t *testing.T) {
	b := setup(t, Options{})
	c := b.chunk(0, []string{"n", "s"}, numbered(0, 3))
	c.Alters = simple
	landed := b.must(c)
	if landed.Written != 3 || b.position(0) != 3 || len(landed.NewColumns) != 2 || len(landed.Said) != 1 {
		t.Errorf("landed %+v, position %d", landed, b.position(0))
	}
	got := one[string](b, `SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN 'not null' END,
			CASE WHEN attcollation <> 0 AND attcollation = 'pg_catalog."C"'::regcollation THEN 'C' END), ', ' ORDER BY attnum)
		FROM pg_attribute WHERE attrelid = 'connector.t_orders'::regclass AND attnum > 0`)
	want := "id bigint not null, _row_hash text not null C, _ingested_at timestamp with time zone not null, _source text, _run_id uuid, " +
		"_mapping_version integer, tenant_id bigint not null, n bigint, s text"
	if got != want {
		t.Errorf("columns are\n%s, want\n%s", got, want)
	}
	got = one[string](b, `SELECT string_agg(c.relname || ' ' || pg_get_userbyid(c.relowner), ', ' ORDER BY c.relname COLLATE "C")
		FROM pg_class AS c WHERE c.relnamespace = 'connector'::regnamespace AND c.relname ~ '^t_orders'`)
	want = "t_orders highwater_owner, t_orders__row_hash_key highwater_owner, t_orders_id_seq highwater_owner, t_orders_idx_tenant_id highwater_owner, t_orders_pkey highwater_owner"
	if got != want {
		t.Errorf("relations are %s, want %s", got, want)
	}
	got = one[string](b, "SELECT polname || ' ' || pg_get_expr(polqual, polrelid) FROM pg_policy WHERE polrelid = 'connector.t_orders'::regclass")
	if !strings.HasPrefix(got, "tenant_isolation (tenant_id = ( SELECT connector.current_tenant()") {
		t.Errorf("policy is %s", got)
	}
	if !one[bool](b, `SELECT relrowsecurity AND NOT relforcerowsecurity AND relacl IS NULL AND obj_description(oid, 'pg_class') IS NOT NULL
		FROM pg_class WHERE oid = 'connector.t_orders'::regclass`) {
		t.Error("row security, privileges or comment are not as they should be")
	}
	if !one[bool](b, "SELECT table_made FROM connector._endpoint") {
		t.Error("it is not remembered that the table was made")
	}
	got = one[string](b, `SELECT string_agg(concat_ws(' ', column_name, field, data_type), ', ' ORDER BY column_name) FROM connector._column`)
	if got != "n n bigint, s s text" {
		t.Errorf("column history is %s", got)
	}
}

func TestRowsCarryWhereTheyCameFrom(t *testing.T) {
	b := setup(t, Options{})
	b.started(2)
	got := one[string](b, `SELECT concat_ws(' ', _source, _run_id = $1, _mapping_version, tenant_id, _ingested_at IS NOT NULL, n, s)
		FROM connector.t_orders WHERE n = 1`, b.run.ID)
	if got != "kafka:acme.orders:0:1 t 3 1 t 1 text 1" {
		t.Errorf("the row is %s", got)
	}
	if e := one[int32](b, "SELECT leader_epoch FROM connector._cursor WHERE partition = 0"); e != 4 {
		t.Errorf("epoch %d is stored", e)
	}
}

func TestDefaultPrivilegesLeaveNoRightOnTheTable(t *testing.T) {
	b := setup(t, Options{})
	b.exec(`DO $$ BEGIN CREATE ROLE land_test_mallory; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
	b.exec("ALTER DEFAULT PRIVILEGES FOR ROLE highwater_owner GRANT TRIGGER, REFERENCES, SELECT ON TABLES TO land_test_mallory")
	t.Cleanup(func() {
		b.exec("ALTER DEFAULT PRIVILEGES FOR ROLE highwater_owner REVOKE TRIGGER, REFERENCES, SELECT ON TABLES FROM land_test_mallory")
	})
	b.started(1)
	if one[bool](b, "SELECT has_table_privilege('land_test_mallory', 'connector.t_orders', 'TRIGGER, REFERENCES, SELECT')") {
		t.Error("a role has rights on the new table")
	}
}

func TestIDsFollowOffsetsAlthoughRowsAreWrittenByHash(t *testing.T) {
	b := setup(t, Options{})
	b.started(50)
	b.must(b.chunk(0, []string{"n", "s"}, numbered(50, 200)))
	if n := one[int64](b, `SELECT count(*) FROM (SELECT n, lag(n) OVER (ORDER BY id) AS before FROM connector.t_orders) AS s WHERE before >= n`); n != 0 {
		t.Errorf("%d rows have an id out of order", n)
	}
	if one[bool](b, `SELECT bool_and(n >= before) FROM (SELECT n, lag(n) OVER (ORDER BY ctid) AS before FROM connector.t_orders) AS s`) {
		t.Error("rows are written in the order of arrival: the index gets no locality")
	}
}

func TestIDsOfASequenceThatGivesNoBlock(t *testing.T) {
	b := setup(t, Options{})
	b.started(1)
	b.exec("ALTER SEQUENCE connector.t_orders_id_seq INCREMENT BY 10 CACHE 5")
	b.must(b.chunk(0, []string{"n", "s"}, numbered(1, 20)))
	if n := one[int64](b, `SELECT count(*) FROM (SELECT n, lag(n) OVER (ORDER BY id) AS before FROM connector.t_orders) AS s WHERE before >= n`); n != 0 {
		t.Errorf("%d rows have an id out of order", n)
	}
}

func TestEqualRowsWithinAChunkLandOnceAndTheFirstStays(t *testing.T) {
	b := setup(t, Options{})
	b.started(1)
	rows := [][]string{row("5", "a"), row("6", "b"), row("5", "a"), row("5", "a")}
	landed := b.must(b.chunk(0, []string{"n", "s"}, rows))
	if landed.Written != 2 || landed.Duplicates != 2 {
		t.Errorf("landed %+v", landed)
	}
	if got := one[string](b, "SELECT _source FROM connector.t_orders WHERE n = 5"); got != "kafka:acme.orders:0:1" {
		t.Errorf("%s stayed", got)
	}
}

func TestRowsThatTheTableHasCountAsDuplicates(t *testing.T) {
	b := setup(t, Options{})
	b.started(10)
	steps := []string{}
	b.lander.o.Failpoint = func(step string) { steps = append(steps, step) }
	if landed := b.must(b.chunk(0, []string{"n", "s"}, append(numbered(5, 5), numbered(10, 5)...))); landed.Written != 5 || landed.Duplicates != 5 {
		t.Errorf("landed %+v", landed)
	}
	if !slices.Contains(steps, "rolled-back") {
		t.Errorf("no conflict was met: %v", steps)
	}
	// The next chunk looks before it copies, and so does the one after, until one has met no duplicate.
	for _, c := range []struct {
		from       int
		duplicates int64
	}{{10, 5}, {15, 0}, {20, 0}} {
		steps = nil
		landed := b.must(b.chunk(0, []string{"n", "s"}, numbered(c.from, 5)))
		if landed.Duplicates != c.duplicates || slices.Contains(steps, "rolled-back") {
			t.Errorf("from %d: landed %+v by the steps %v", c.from, landed, steps)
		}
	}
	if b.lander.remember(b.run).lookFirst {
		t.Error("it still looks first")
	}
}

func TestAResetReadsEverythingAgainAndWritesNothing(t *testing.T) {
	b := setup(t, Options{})
	b.started(100)
	b.must(b.chunk(0, []string{"n", "s"}, numbered(100, 100)))
	b.again()
	for range 2 {
		landed := b.must(b.chunk(0, []string{"n", "s"}, numbered(int(b.next[0]), 100)))
		if landed.Duplicates != 100 || landed.Written != 0 {
			t.Errorf("landed %+v", landed)
		}
	}
	if n := b.rows("true"); n != 200 {
		t.Errorf("the table has %d rows", n)
	}
}

func TestSeveralPartitionsInOneChunk(t *testing.T) {
	b := setup(t, Options{})
	b.started(3)
	one, two := b.chunk(0, []string{"n", "s"}, numbered(3, 4)), b.chunk(1, []string{"n", "s"}, numbered(2, 4))
	one.Advances = append(one.Advances, two.Advances...)
	one.Advances[1].To += 5
	one.Advances[1].NoRecord, one.Advances[1].Filtered, one.Advances[1].Tombstones = 1, 1, 1
	one.Letters = []Letter{{Partition: 1, Offset: 5, Reason: "MalformedSource", Message: "broken"}, {Partition: 1, Offset: 6, Reason: "MalformedSource", Message: "deleted", Tombstone: true}}
	one.Rows = append(one.Rows, two.Rows...)
	landed := b.must(one)
	want := []Counts{{Partition: 0, Written: 4}, {Partition: 1, Duplicates: 4, Letters: 2}}
	if !slices.Equal(landed.Partitions, want) || b.position(0) != 7 || b.position(1) != 9 {
		t.Errorf("landed %+v, positions %d and %d", landed.Partitions, b.position(0), b.position(1))
	}
}

func TestRowsThatLackAColumnWithADefaultGetIt(t *testing.T) {
	b := setup(t, Options{})
	b.started(1)
	b.exec("ALTER TABLE connector.t_orders ADD COLUMN d text DEFAULT 'unsaid'")
	c := b.chunk(0, []string{"n", "s"}, nil)
	c.Columns = [][]string{{"n", "d"}, {"n"}, {}}
	c.Rows = []Row{messageRow(0, 1, row("1", "said")), messageRow(0, 2, row("2")), messageRow(0, 3, row("3", `\N`)), messageRow(0, 4, nil)}
	c.Rows[1].Group, c.Rows[3].Group = 1, 2
	c.Advances[0].To = 5
	shape, err := b.lander.Shape(t.Context(), b.run)
	if err != nil {
		t.Fatal(err)
	}
	b.shape = shape
	b.must(c)
	if got := one[string](b, "SELECT string_agg(coalesce(n::text, '-') || coalesce(d, 'null'), ' ' ORDER BY id) FROM connector.t_orders WHERE id > 1"); got != "1said 2unsaid 3null -unsaid" {
		t.Errorf("rows are %s", got)
	}
}

func TestACancelThatWasAskedForIsReported(t *testing.T) {
	b := setup(t, Options{})
	b.started(1)
	b.exec("UPDATE connector._run SET cancel_requested = true")
	if landed := b.must(b.chunk(0, []string{"n", "s"}, numbered(1, 1))); !landed.Cancelled {
		t.Error("the chunk does not report the cancel")
	}
}

func TestAChunkThatDoesNotAddUpIsNotLanded(t *testing.T) {
	b := setup(t, Options{})
	c := b.chunk(0, []string{"n", "s"}, numbered(0, 2))
	c.Advances[0].To++
	_, err := b.land(c)
	wantError(t, err, "internal", "")
	if b.position(0) != 0 {
		t.Error("the position moved")
	}
}

func TestThreeHundredColumnsTimesAThousandRows(t *testing.T) {
	b := setup(t, Options{})
	var alters []table.Alter
	var columns []string
	for i := range 300 {
		columns = append(columns, fmt.Sprintf("column %d", i))
		alters = append(alters, table.Alter{Column: columns[i], Field: columns[i], Type: "bigint"})
	}
	var rows [][]string
	for i := range 1000 {
		values := make([]string, len(columns))
		for j := range values {
			values[j] = fmt.Sprint(1000*j + i)
		}
		rows = append(rows, values)
	}
	c := b.chunk(0, columns, rows)
	c.Alters = alters
	if landed := b.must(c); landed.Written != 1000 || len(landed.NewColumns) != 300 {
		t.Errorf("landed %+v", landed)
	}
	if got := one[int64](b, `SELECT "column 299" FROM connector.t_orders ORDER BY id DESC LIMIT 1`); got != 299_999 {
		t.Errorf("the last value is %d", got)
	}
}
