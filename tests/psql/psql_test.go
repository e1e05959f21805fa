// Package psql runs golden transcripts and every statement of the documentation through psql, against a database with a
// sidecar and the demo broker.
package psql

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"highwater/sidecar/app"
	"highwater/sidecar/config"
	"highwater/sidecar/demo/corpus"
	"highwater/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// demoBroker is the address that the documentation and the transcripts name.
const demoBroker = "127.0.0.1:29092"

// stage is a database with a sidecar, beside a broker that holds the ACME topics.
type stage struct {
	url, broker string
}

func newStage(t *testing.T) stage {
	t.Helper()
	if _, err := exec.LookPath("psql"); err != nil {
		if os.Getenv("HIGHWATER_REQUIRE_KAFKA") == "1" {
			t.Fatal("psql is missing")
		}
		t.Skip("LEFT OUT: psql is missing, so no transcript was compared")
	}
	s := stage{url: harness.Database(t), broker: harness.Fake(t).ListenAddrs()[0]}
	if err := corpus.Fill(t.Context(), s.broker); err != nil {
		t.Fatal(err)
	}
	side, err := app.Start(t.Context(), app.Options{
		Config:  config.Config{DatabaseURL: s.url, KeyFile: harness.KeyFile(t), MaxRuns: 4, MemoryMiB: 256},
		Environ: func(string) (string, bool) { return "", false },
		Logger:  slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = side.Stop(context.Background()) })
	return s
}

// psql types a script into psql and gives what psql printed, with the broker's address as the documentation has it. Read
// from standard input, messages bear no file name, as at the prompt. Where in our functions an error arose is not shown:
// it changes with every line of theirs.
func (s stage) psql(t *testing.T, script string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "psql", append([]string{"-X", "-q", "-d", s.url, "-v", "SHOW_CONTEXT=never"}, args...)...)
	cmd.Stdin = strings.NewReader(strings.ReplaceAll(script, demoBroker, s.broker))
	cmd.Env = append(os.Environ(), "PGTZ=UTC", "PGDATESTYLE=ISO", "LC_ALL=C.UTF-8", "PGOPTIONS=-c intervalstyle=postgres")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
	return strings.ReplaceAll(string(out), s.broker, demoBroker)
}

// golden tells whether golden files are to be rewritten.
func golden() bool { return os.Getenv("HIGHWATER_GOLDEN") == "write" }

// Each NN_topic.sql is run as it stands; what psql prints must be NN_topic.out. Times and ids are masked by the script
// itself. The transcripts double as examples.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("[0-9][0-9]_*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".sql"), func(t *testing.T) {
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := paragraphs(newStage(t).psql(t, string(script), "-a"))
			compare(t, strings.TrimSuffix(file, ".sql")+".out", got)
		})
	}
}

// paragraphs sets a blank line before each comment of a transcript and nowhere else: psql's releases differ in the blank
// lines that they echo.
func paragraphs(transcript string) string {
	var b strings.Builder
	last := ""
	for line := range strings.SplitSeq(transcript, "\n") {
		line = strings.TrimRight(line, " ")
		if line == "" {
			continue
		}
		if strings.HasPrefix(line, "-- ") && !strings.HasPrefix(last, "-- ") && last != "" {
			b.WriteString("\n")
		}
		b.WriteString(line + "\n")
		last = line
	}
	return b.String()
}

// compare holds got against a golden file, or rewrites the file.
func compare(t *testing.T, file, got string) {
	t.Helper()
	if golden() {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := firstDifference(string(want), got); d != "" {
		t.Errorf("%s differs (HIGHWATER_GOLDEN=write rewrites it): %s", file, d)
	}
}

// firstDifference names the first line in which two texts differ, or nothing.
func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		a, b := "<end>", "<end>"
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if strings.TrimRight(a, " ") != strings.TrimRight(b, " ") {
			return fmt.Sprintf("line %d:\n- %s\n+ %s", i+1, a, b)
		}
	}
	return ""
}
