package build

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzCut holds every chunk to its invariant, and every row to a text that COPY reads as one line of as many values as
// the chunk names columns.
func FuzzCut(f *testing.F) {
	for _, c := range valueCases {
		if v := c.values[len(c.values)-1]; len(v) < 1000 {
			f.Add(v, `{"id_":1,"c":2,"s":"x"}`, uint8(0))
			f.Add(`{"c":1,"s":"\u00e9\\","j":{"b":1,"a":[]}}`, v, uint8(len(v)))
		}
	}
	f.Fuzz(func(t *testing.T, one, two string, how uint8) {
		o := Options{TypeChange: []string{TypeChangeLetter, TypeChangeWiden, TypeChangeFail}[how%3], Dedup: []string{DedupContent, DedupOffset, DedupNone}[how/3%3]}
		if how&64 != 0 {
			o.Layout = LayoutDocument
		}
		if how&128 != 0 {
			o.Include, o.Rename, o.Exclude = []string{"key", "headers"}, map[string]string{"a": "b"}, []string{"c"}
		}
		b := New(o)
		b.Add(batchOf(0, 0, one, two, one, "<null>"))
		shape := shapeOf("c:bigint", "j:jsonb", "d:double precision", "s:text")
		if how%2 == 0 {
			shape = nil
		}
		for b.Pending() {
			c, err := b.Cut(shape)
			if err != nil {
				if !utf8.ValidString(err.Error()) || strings.ContainsRune(err.Error(), 0) {
					t.Fatalf("error %q", err)
				}
				return
			}
			if err := c.Check(); err != nil {
				t.Fatal(err)
			}
			if text := shown(c); strings.Contains(text, "BROKEN") || strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
				t.Fatalf("chunk %q", text)
			}
			if len(c.Rows) > 0 {
				shape = shape.With(c.Alters)
			}
			b.Landed(len(c.Rows), true)
		}
	})
}
