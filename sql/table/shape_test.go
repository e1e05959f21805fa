package table

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestColumnNameKeepsWhatFitsAndCutsTheRestAtACharacter(t *testing.T) {
	long := strings.Repeat("a", 70)
	for _, c := range []struct {
		field string
		cut   bool
		kept  string
	}{
		{"MONTANT_€", false, "MONTANT_€"},
		{`"; DROP TABLE x; --`, false, `"; DROP TABLE x; --`},
		{strings.Repeat("b", 63), false, strings.Repeat("b", 63)},
		{long + "1", true, strings.Repeat("a", 54) + "_"},
		{strings.Repeat("é", 40), true, strings.Repeat("é", 27) + "_"},
		{"x" + strings.Repeat("é", 40), true, "x" + strings.Repeat("é", 26) + "_"},
	} {
		name, cut := ColumnName(c.field)
		if cut != c.cut || !strings.HasPrefix(name, c.kept) || len(name) > NameMax || !utf8.ValidString(name) {
			t.Errorf("%q became %q, cut %v", c.field, name, cut)
		}
		if cut && len(name) != len(c.kept)+8 {
			t.Errorf("%q became %q: not eight digits behind the kept part", c.field, name)
		}
	}
	one, _ := ColumnName(long + "1")
	two, _ := ColumnName(long + "2")
	if one == two {
		t.Errorf("two fields share the column %q", one)
	}
}

func TestReservedNamesAreTheSystemColumnsAndThoseOfPostgreSQL(t *testing.T) {
	for _, name := range []string{
		"id", "_row_hash", "_ingested_at", "_source", "_run_id", "_mapping_version", "tenant_id", "xmin", "xmax", "cmin",
		"cmax", "ctid", "tableoid",
	} {
		if !Reserved(name) {
			t.Errorf("%s is free", name)
		}
	}
	for _, name := range []string{"ID", "oid", "_topic", "", "Id "} {
		if Reserved(name) {
			t.Errorf("%q is reserved", name)
		}
	}
}

func TestWithGivesTheShapeThatTheChunkWillFind(t *testing.T) {
	var none *Shape
	s := none.With([]Alter{{Column: "a", Type: "bigint"}, {Column: "b", Type: "numeric(18,4)"}})
	if len(s.Columns) != 9 || s.Columns[7].Name != "a" || s.Columns[8].Type != Money {
		t.Fatalf("columns of a new table: %+v", s.Columns)
	}
	w := s.With([]Alter{{Column: "a", Type: "numeric", Widen: true}, {Column: "c", Type: "timestamptz"}})
	if c, _ := w.Column("a"); c.Type != Numeric {
		t.Errorf("a is %+v", c)
	}
	if c, ok := w.Column("c"); !ok || c.SQLType != "timestamp with time zone" {
		t.Errorf("c is %+v", c)
	}
	if c, _ := s.Column("a"); c.Type != BigInt {
		t.Error("the shape it was made from changed")
	}
	if _, ok := none.Column("id"); ok {
		t.Error("a table that does not exist has a column")
	}
}

func TestRoomNamesTheLimitThatWasMet(t *testing.T) {
	var none *Shape
	if n, _ := none.Room(); n != MaxColumns-7 {
		t.Errorf("a new table has room for %d", n)
	}
	alters := make([]Alter, MaxColumns-7)
	for i := range alters {
		alters[i] = Alter{Column: fmt.Sprint("k", i), Type: "text"}
	}
	full := none.With(alters)
	if n, why := full.Room(); n != 0 || !strings.Contains(why, "document") {
		t.Errorf("room for %d, because %q", n, why)
	}
	dropped := *none.With(nil)
	dropped.attributes = maxAttributes
	if n, why := dropped.Room(); n != 0 || !strings.Contains(why, "dropped") {
		t.Errorf("room for %d, because %q", n, why)
	}
}

func TestAppendCopyEscapesWhatCopyWouldRead(t *testing.T) {
	for in, want := range map[string]string{
		"plain":         "plain",
		"":              "",
		`\N`:            `\\N`,
		"a\tb\nc\rd\\e": `a\tb\nc\rd\\e`,
		"\b\f\v é":      "\b\f\v é",
		`\.`:            `\\.`,
	} {
		if got := AppendCopy(nil, []byte(in)); !bytes.Equal(got, []byte(want)) {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
