package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"highwater/sidecar/app"
	"highwater/sidecar/demo/postgres"
	"highwater/tests/harness"
)

// stopMost is how long a sidecar may take from SIGTERM to its end (spec 3.3).
const stopMost = 10 * time.Second

// The binary as it is shipped: its signals, exit codes and HTTP answers.
func TestTheProgram(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(t.TempDir(), "highwater")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "highwater/sidecar")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	t.Run("stops in the middle of a run", func(t *testing.T) { stopsMidRun(t, bin) })
	t.Run("exit codes", func(t *testing.T) { exitCodes(t, bin) })
	t.Run("http", func(t *testing.T) { answersOverHTTP(t, bin) })
}

// serve starts the program on the fixture's database; port 0 is a free one, which its log does not tell, so HTTP is off
// where no address is given.
func (f *fixture) serve(bin, httpAddr string) *process {
	f.Helper()
	return f.startProcess(exec.Command(bin, "serve", "--no-migrate"), "HIGHWATER_HTTP_ADDR="+httpAddr)
}

// stop sends SIGTERM and waits for the end, which must come in time and with exit code 0.
func (f *fixture) stop(p *process) {
	f.Helper()
	begun := time.Now()
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		f.Fatal(err)
	}
	receive(f, "the program's end", p.ended)
	f.Logf("from SIGTERM to the end: %s", time.Since(begun).Round(time.Millisecond))
	if took := time.Since(begun); took > stopMost {
		f.Errorf("the program took %s to stop", took)
	}
	if code := p.state.ExitCode(); code != app.ExitOK {
		f.Errorf("the program stopped with exit code %d: %s", code, p.log)
	}
}

// SIGTERM hands a run back after the chunk in hand; whoever comes next goes on with it at once, and it stays the same run.
func stopsMidRun(t *testing.T, bin string) {
	f := onFake(t)
	f.long("stops")
	first := f.serve(bin, "")
	f.until("SELECT count(*) = 1 FROM connector.sidecars")
	runID := f.ask("stops")
	f.chunks(runID, 5)
	f.stop(first)
	f.want("Running", "SELECT status FROM connector.runs WHERE run_id = $1", runID)
	f.want("true", "SELECT lease_sidecar IS NULL FROM connector._endpoint")
	f.exactlyBelowCursor("t_stops")

	second := f.serve(bin, "")
	handed := time.Now()
	f.until("SELECT count(*) > 0 FROM connector.log WHERE run_id = $1 AND message LIKE 'taken over by sidecar %'", runID)
	if took := time.Since(handed); took > 5*time.Second {
		t.Errorf("a run that was handed back began again after %s", took)
	}
	// Two signals are no more than one, and a third sidecar finishes what the second leaves.
	if err := second.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	f.stop(second)
	f.serve(bin, "")
	e := f.wait(runID)
	if e.RunID != runID || e.Status != "Completed" || e.RecordsIn != longMessages || e.RecordsOut != longMessages || e.Duplicates != 0 {
		t.Errorf("after three sidecars: %+v", e)
	}
	f.whole("stops")
	f.want("0", "SELECT count(*) FROM connector_queue.river_job WHERE attempt > 3 OR errors IS NOT NULL")
}

// Each way not to start has its exit code, and says on the terminal what is wrong.
func exitCodes(t *testing.T, bin string) {
	t.Parallel()
	closed := freeAddr(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	newer := harness.Database(t)
	newerPool := harness.Pool(t, newer)
	if _, err := newerPool.Exec(t.Context(), "INSERT INTO connector._migration (number, name, sha256) VALUES (9999, 'from the future', repeat('0', 64))"); err != nil {
		t.Fatal(err)
	}
	good := harness.Database(t)
	for _, c := range []struct {
		name    string
		args    []string
		environ []string
		code    int
		says    string
	}{
		{"no command", nil, nil, app.ExitUsage, "highwater serve"},
		{"an unknown command", []string{"sevre"}, nil, app.ExitUsage, `unknown command "sevre"`},
		{"an unknown flag", []string{"serve", "--max-rums=3"}, nil, app.ExitUsage, "max-rums"},
		{"an argument too many", []string{"serve", "now"}, nil, app.ExitUsage, `"now"`},
		{"help", []string{"help"}, nil, app.ExitOK, "highwater serve"},
		{"help of a command", []string{"serve", "-h"}, nil, app.ExitOK, "max-runs"},
		{"version", []string{"version"}, nil, app.ExitOK, "highwater"},
		{"a flag out of its limit", []string{"serve", "--max-runs=0"}, nil, app.ExitConfiguration, "1..64"},
		{"an environment variable that is no number", []string{"serve"}, []string{"HIGHWATER_MEMORY_MIB=much"}, app.ExitConfiguration, `"much"`},
		{"a log level that is none", []string{"serve"}, []string{"HIGHWATER_LOG_LEVEL=loud"}, app.ExitConfiguration, `"loud"`},
		{"an http address that is none", []string{"serve"}, []string{"HIGHWATER_HTTP_ADDR=here"}, app.ExitConfiguration, `"here"`},
		{"an http address that is taken", []string{"serve"}, []string{"HIGHWATER_DATABASE_URL=" + good, "HIGHWATER_HTTP_ADDR=" + taken.Addr().String()}, app.ExitConfiguration, "address already in use"},
		{"a database URL that is none", []string{"serve"}, []string{"HIGHWATER_DATABASE_URL=postgres://[::1"}, app.ExitConfiguration, "database URL"},
		{"no database there", []string{"serve"}, []string{"HIGHWATER_DATABASE_URL=postgres://u:secretword@" + closed + "/d"}, app.ExitDatabase, "connection refused"},
		{"no such database", []string{"serve"}, []string{"HIGHWATER_DATABASE_URL=" + strings.Replace(good, "/test_", "/absent_", 1)}, app.ExitDatabase, "does not exist"},
		{"a newer database", []string{"serve"}, []string{"HIGHWATER_DATABASE_URL=" + newer}, app.ExitMigration, "newer"},
		{"a newer database, not migrating", []string{"serve", "--no-migrate"}, []string{"HIGHWATER_DATABASE_URL=" + newer}, app.ExitMigration, "newer"},
		{"a newer database to migrate", []string{"migrate"}, []string{"HIGHWATER_DATABASE_URL=" + newer}, app.ExitMigration, "newer"},
		{"a database without anything, not migrating", []string{"serve", "--no-migrate"}, []string{"HIGHWATER_DATABASE_URL=" + harness.EmptyDatabase(t)}, app.ExitMigration, "migrat"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), signalWait)
			defer cancel()
			cmd := exec.CommandContext(ctx, bin, c.args...)
			cmd.Env = append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "HIGHWATER_HTTP_ADDR="}, c.environ...)
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d (%v), want %d: %s", code, err, c.code, out)
			}
			if !strings.Contains(string(out), c.says) {
				t.Errorf("it says %q, want %q in it", out, c.says)
			}
			if strings.Contains(string(out), "secretword") {
				t.Errorf("it shows a password: %q", out)
			}
		})
	}
}

// freeAddr is a loopback address on which nobody listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// The three addresses answer, and tell a database that is away from a process that is.
func answersOverHTTP(t *testing.T, bin string) {
	t.Parallel()
	server := ownServer(t, "http")
	addr := harness.Fake(t).ListenAddrs()[0]
	f := newFixtureIn(t, server.URL("http"), addr)
	topic := f.topic("http", 1, nil)
	f.produce(topic, 0, append(partners(0, 10), "bad")...)
	f.declare("http", topic, "")
	base := freeAddr(t)
	f.serve(bin, base)
	f.answers(base, "/readyz", http.StatusOK, "ready")
	f.answers(base, "/healthz", http.StatusOK, "ok")
	f.completed("http", 11, 10)
	page := f.answers(base, "/metrics", http.StatusOK, "highwater_runs_total")
	for _, line := range []string{
		`highwater_rows_total{result="written"} 10`, `highwater_dead_letters_total 1`, `highwater_open_dead_letters 1`, `highwater_lag_messages 0`,
		`highwater_runs_total{code="ok",status="Completed"} 1`, `highwater_chunk_seconds_count 1`,
	} {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(line) + `$`).MatchString(page) {
			t.Errorf("the metrics lack %q", line)
		}
	}
	for _, name := range []string{topic, "t_http"} {
		if strings.Contains(page, name) {
			t.Errorf("the metrics bear a name out of the data: %s", name)
		}
	}
	if err := server.Restart(t.Context(), postgres.Fast); err != nil {
		t.Fatal(err)
	}
	f.pool.Reset()
	f.answers(base, "/readyz", http.StatusOK, "ready")
	if err := server.Halt(postgres.Fast); err != nil {
		t.Fatal(err)
	}
	f.answers(base, "/readyz", http.StatusServiceUnavailable, "not ready")
	f.answers(base, "/healthz", http.StatusOK, "ok")
	f.answers(base, "/metrics", http.StatusOK, "highwater_rows_total")
	if err := server.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.pool.Reset()
	f.answers(base, "/readyz", http.StatusOK, "ready")
}

// answers asks until the status is the one wanted, and gives the page.
func (f *fixture) answers(addr, path string, status int, words string) string {
	f.Helper()
	var got, page string
	for deadline := time.Now().Add(signalWait); time.Now().Before(deadline); {
		resp, err := http.Get("http://" + addr + path)
		if err != nil {
			got = err.Error()
		} else {
			b, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if got, page = resp.Status, string(b); resp.StatusCode == status {
				f.says(page, words)
				return page
			}
		}
		receive(f, "a pause", time.After(lookEvery))
	}
	f.Fatalf("%s answers %s, want %d", path, got, status)
	return ""
}
