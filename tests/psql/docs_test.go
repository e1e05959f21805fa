package psql

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// block is one fenced block of a page: its language line and its text.
type block struct {
	line int
	info string
	text string
}

// fences takes the fenced blocks out of a Markdown page, in order.
func fences(page string) (out []block) {
	var open *block
	for i, line := range strings.SplitAfter(page, "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && open == nil:
			open = &block{line: i + 1, info: fence}
		case isFence:
			out, open = append(out, *open), nil
		case open != nil:
			open.text += line
		}
	}
	return out
}

// Every SQL block of the documentation is run, page by page, in one session. A block marked `sql fails` must raise an
// error and no other may; where a text block follows, it is what psql printed.
func TestEveryStatementOfTheDocumentation(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append([]string{"../../README.md"}, pages...) {
		t.Run(filepath.Base(page), func(t *testing.T) {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			blocks := fences(string(text))
			script := "\\pset null ''\n"
			for i, b := range blocks {
				if strings.HasPrefix(b.info, "sql") {
					script += fmt.Sprintf("\\echo @@%d\n%s\n", i, b.text)
				}
			}
			if !strings.Contains(script, "@@") {
				return // a page without statements
			}
			checkPage(t, page, string(text), blocks, newStage(t).psql(t, script))
		})
	}
}

// checkPage holds what psql printed against the page, or writes it into the page's text blocks.
func checkPage(t *testing.T, file, page string, blocks []block, printed string) {
	t.Helper()
	for part := range strings.SplitSeq(printed, "@@") {
		number, out, _ := strings.Cut(part, "\n")
		var i int
		if _, err := fmt.Sscan(number, &i); err != nil {
			continue
		}
		b := blocks[i]
		failed := strings.Contains(out, "ERROR:")
		if wants := b.info == "sql fails"; failed != wants {
			t.Errorf("the block at line %d: failed %v, expected %v:\n%s", b.line, failed, wants, out)
		}
		if i+1 == len(blocks) || blocks[i+1].info != "text" {
			continue
		}
		if d := firstDifference(strings.TrimSpace(blocks[i+1].text), strings.TrimSpace(out)); d != "" && !golden() {
			t.Errorf("the output at line %d is not what psql prints (HIGHWATER_GOLDEN=write rewrites it): %s", blocks[i+1].line, d)
		}
		page = strings.Replace(page, "```text\n"+blocks[i+1].text+"```", "```text\n"+tidy(out)+"```", 1)
	}
	if golden() && !t.Failed() {
		if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tidy takes the blanks off the ends of lines, and the empty lines off the end.
func tidy(out string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(out, " \n"), "\n") {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
