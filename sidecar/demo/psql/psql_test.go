package psql

import (
	"strings"
	"testing"
)

func TestPrintAlignsAsPsqlDoes(t *testing.T) {
	for _, c := range []struct {
		name  string
		table Table
		want  []string
	}{
		{
			"numbers to the right, text to the left, names in the middle",
			Table{Columns: []string{"id", "name"}, right: []bool{true, false}, Rows: [][]string{{"7", "Hydraulique Lyon"}, {"1000", ""}}},
			[]string{"  id  |       name", "------+------------------", "    7 | Hydraulique Lyon", " 1000 |", "(2 rows)", "", ""},
		},
		{
			"letters are counted, not bytes",
			Table{Columns: []string{"MONTANT_€", "x"}, right: []bool{true, false}, Rows: [][]string{{"1.5000", "é"}}},
			[]string{" MONTANT_€ | x", "-----------+---", "    1.5000 | é", "(1 row)", "", ""},
		},
		{
			"a line end inside a value stays in its row",
			Table{Columns: []string{"m"}, right: []bool{false}, Rows: [][]string{{"a\nb"}}},
			[]string{"  m", "------", ` a\nb`, "(1 row)", "", ""},
		},
		{
			"no row",
			Table{Columns: []string{"m"}, right: []bool{false}},
			[]string{" m", "---", "(0 rows)", "", ""},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			if err := c.table.Print(&b); err != nil {
				t.Fatal(err)
			}
			if want := strings.Join(c.want, "\n"); b.String() != want {
				t.Errorf("printed\n%s\nwant\n%s", b.String(), want)
			}
		})
	}
}

func TestUnalignedIsRowsAndBars(t *testing.T) {
	table := Table{Columns: []string{"a", "b"}, Rows: [][]string{{"1", "x"}, {"2", ""}}}
	if got, want := table.Unaligned(), "1|x\n2|"; got != want {
		t.Errorf("unaligned %q, want %q", got, want)
	}
}
