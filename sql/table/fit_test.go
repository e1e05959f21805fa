package table

import "testing"

func TestFitSaysWhatAValueMeansForItsColumn(t *testing.T) {
	domain := NewColumn("c", "money_like")
	domain.base = "numeric(10,2)"
	domain.classify()
	for _, c := range []struct {
		column Column
		kind   Kind
		text   string
		want   Fit
	}{
		{NewColumn("c", "bigint"), Int, "1", Fits},
		{NewColumn("c", "bigint"), Number, "1.0", Widens},
		{NewColumn("c", "bigint"), Number, "9223372036854775808", Widens},
		{NewColumn("c", "bigint"), String, "1", Conflicts},
		{NewColumn("c", "bigint"), Bool, "true", Conflicts},
		{NewColumn("c", "bigint"), JSON, "[]", Conflicts},
		{NewColumn("c", "bigint"), Null, "null", Fits},
		{NewColumn("c", "numeric(18,4)"), Number, "1.2345", Fits},
		{NewColumn("c", "numeric(18,4)"), Number, "1.23450", Fits},
		{NewColumn("c", "numeric(18,4)"), Number, "1.23456", Widens},
		{NewColumn("c", "numeric(18,4)"), Int, "12345678901234", Fits},
		{NewColumn("c", "numeric(18,4)"), Int, "123456789012345", Widens},
		{NewColumn("c", "numeric(18,4)"), String, "1", Conflicts},
		{NewColumn("c", "numeric"), Number, "1e400", Fits},
		{NewColumn("c", "numeric"), Bool, "true", Conflicts},
		{NewColumn("c", "text"), Int, "1", Fits},
		{NewColumn("c", "text"), JSON, "{}", Fits},
		{NewColumn("c", "jsonb"), String, "a", Fits},
		{NewColumn("c", "boolean"), Bool, "true", Fits},
		{NewColumn("c", "boolean"), String, "true", Conflicts},
		{NewColumn("c", "boolean"), Int, "1", Conflicts},
		{NewColumn("c", "numeric(10,2)"), Number, "12345678.25", Fits},
		{NewColumn("c", "numeric(10,2)"), Number, "1.239", Conflicts},
		{NewColumn("c", "numeric(10,2)"), String, "1.239", Conflicts},
		{NewColumn("c", "numeric(10,2)"), Int, "123456789", Conflicts},
		{NewColumn("c", "numeric(5,-2)"), Int, "12300", Fits},
		{NewColumn("c", "numeric(5,-2)"), Int, "12345", Conflicts},
		{domain, Number, "1.239", Conflicts},
		{domain, Number, "1.23", Fits},
		{NewColumn("c", "uuid"), String, "nonsense", Fits},
		{NewColumn("c", "integer"), Number, "1.5", Fits},
		{NewColumn("c", "double precision"), Number, "0.1", Fits},
		{NewColumn("c", "double precision"), Number, "-1.50e3", Fits},
		{NewColumn("c", "double precision"), Number, "0.1234567890123456789", Conflicts},
		{NewColumn("c", "double precision"), Int, "9007199254740993", Conflicts},
		{NewColumn("c", "double precision"), Number, "1e400", Conflicts},
		{NewColumn("c", "double precision"), String, "abc", Fits},
		{NewColumn("c", "real"), Int, "16777217", Conflicts},
		{NewColumn("c", "real"), Number, "0.1", Fits},
		{NewColumn("c", "money"), Number, "1.239", Conflicts},
		{NewColumn("c", "timestamptz"), String, "2026-01-01T00:00:00.123456Z", Fits},
		{NewColumn("c", "timestamptz"), String, "2026-01-01T00:00:00.123456000Z", Fits},
		{NewColumn("c", "timestamptz"), String, "2026-01-01T00:00:00.123456789Z", Conflicts},
		{NewColumn("c", "timestamp(3) without time zone"), String, "2026-01-01 00:00:00.1234", Conflicts},
		{NewColumn("c", "date"), String, "2026-01-01", Fits},
	} {
		t.Run(c.column.SQLType+" "+c.text, func(t *testing.T) {
			if got := c.column.Fit(c.kind, []byte(c.text)); got != c.want {
				t.Errorf("kind %d: got %d, want %d", c.kind, got, c.want)
			}
		})
	}
}

func TestFitAllocatesNothingForTypesThatMessagesMake(t *testing.T) {
	c, text := NewColumn("c", "numeric(18,4)"), []byte("12.50")
	if n := testing.AllocsPerRun(100, func() { c.Fit(Number, text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
