package e2e

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"highwater/queue/land"
	"highwater/queue/worker"
	"highwater/sidecar/app"
	"highwater/sidecar/config"
	"highwater/tests/harness"
)

// childEnv makes the test binary a sidecar. Its value is "step@n", the failpoint at which the n-th call kills the process,
// "stop:step@n" for one at which the process is paused until somebody continues it, or "-" for a sidecar that just lives.
const childEnv = "HIGHWATER_E2E_CHILD"

// child serves the database of HIGHWATER_DATABASE_URL until it is killed.
func child() {
	at, paused := strings.CutPrefix(os.Getenv(childEnv), "stop:")
	step, nth, _ := strings.Cut(at, "@")
	n, _ := strconv.Atoi(nth)
	var calls atomic.Int64
	ctx := context.Background()
	err := app.Serve(ctx, app.Options{
		Config: config.Config{DatabaseURL: os.Getenv("HIGHWATER_DATABASE_URL"), MaxRuns: 2, MemoryMiB: 256, NoMigrate: true},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Failpoint: func(at string) {
			switch {
			case at != step || calls.Add(1) != int64(n):
			case paused:
				_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
				<-time.After(stopSettle)
			default:
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {} // the signal is on its way; this step must not be left
			}
		},
	})
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// stopSettle outlasts the moment that a stop takes to reach every thread. A process that was stopped finds it over.
const stopSettle = 100 * time.Millisecond

// process is a sidecar in a process of its own.
type process struct {
	*os.Process
	ended chan struct{} // closed when it has ended
	state *os.ProcessState
	log   *transcript
}

// transcript is what a process has written.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
	also io.Writer
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(p)
	return t.also.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// startChild starts a sidecar process, see [childEnv], and gives a channel that closes when it has ended.
func (f *fixture) startChild(at string) (pid int, ended <-chan struct{}) {
	f.Helper()
	p := f.startSidecar(at)
	return p.Pid, p.ended
}

// startSidecar is startChild for a test that looks at what the process writes, or signals it.
func (f *fixture) startSidecar(at string) *process {
	f.Helper()
	return f.startProcess(exec.Command(os.Args[0]), childEnv+"="+at)
}

// startProcess starts a program on the fixture's database; it ends with the test at the latest.
func (f *fixture) startProcess(cmd *exec.Cmd, environ ...string) *process {
	f.Helper()
	p := &process{ended: make(chan struct{}), log: &transcript{also: io.Discard}}
	if testing.Verbose() {
		p.log.also = f.Output()
	}
	cmd.Env = append(append(os.Environ(), "HIGHWATER_DATABASE_URL="+f.asSidecar()), environ...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = p.log
	if err := cmd.Start(); err != nil {
		f.Fatal(err)
	}
	p.Process = cmd.Process
	go func() {
		_ = cmd.Wait()
		p.state = cmd.ProcessState
		close(p.ended)
	}()
	f.Cleanup(func() {
		_ = p.Kill()
		<-p.ended
	})
	return p
}

// kill is one place to die at: the nth call of a failpoint. again: the topic was read before, so every row is a duplicate.
type kill struct {
	step  string
	nth   int
	again bool
}

// kills lists every step of a run's life and of a chunk, so that a new step is in the sweep the day it is written.
func kills() (out []kill) {
	for _, s := range worker.Steps {
		out = append(out, kill{step: s, nth: 1})
	}
	for _, s := range land.Steps {
		switch s {
		case "altered": // the first chunk makes the table, a later one adds a column
			out = append(out, kill{step: s, nth: 1}, kill{step: s, nth: 2})
		case "rolled-back": // only where rows had landed before
			out = append(out, kill{step: s, nth: 1, again: true})
		case "copying", "copied": // nothing is copied where every row had landed before
			out = append(out, kill{step: s, nth: 1}, kill{step: s, nth: 3}, kill{step: s, nth: 1, again: true})
		default:
			out = append(out, kill{step: s, nth: 1}, kill{step: s, nth: 3}, kill{step: s, nth: 2, again: true})
		}
	}
	return out
}

// The topic of the sweep: two partitions, every seventh message broken, a column that comes late.
const (
	killMessages = 2100
	killPoison   = 300
	killGood     = killMessages - killPoison
)

func (f *fixture) killTopic() {
	f.Helper()
	topic := f.topic("kill", 2, nil)
	values := partners(0, killMessages)
	for i := 0; i < killMessages; i += killMessages / killPoison {
		values[i] = "{broken"
	}
	values[1500] = strings.Replace(values[1500], `"city"`, `"added_late":1,"city"`, 1)
	f.produce(topic, 0, values[:killMessages/2]...)
	f.produce(topic, 1, values[killMessages/2:]...)
	f.declare("kill", topic, `,"chunk_rows":300`)
}

// Every step of a chunk and of a run's life is a place to die at. At once after the kill the table equals the topic below
// the cursor; after a restart the same run completes, exactly once.
func TestKillAtEveryStep(t *testing.T) {
	addr := harness.Fake(t).ListenAddrs()[0]
	for _, k := range kills() {
		t.Run(fmt.Sprintf("%s@%d,again=%v", k.step, k.nth, k.again), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, addr)
			f.killTopic()
			if k.again {
				s := f.sidecar(nil)
				f.completed("kill", killMessages, killGood)
				if err := s.Stop(t.Context()); err != nil {
					t.Fatal(err)
				}
				f.exec("SELECT connector.reset_cursor('kill')")
			}
			runID := f.dieAt(k)
			if !k.again {
				f.exactlyBelowCursor("t_kill")
			}
			f.startChild("-")
			e := f.wait(runID)
			if e.RunID != runID || e.Status != "Completed" || e.RecordsIn != killMessages || e.RecordsOut != killGood || e.DeadLetters != killPoison {
				t.Errorf("after the restart: %+v", e)
			}
			if !k.again && e.Duplicates != 0 {
				t.Errorf("%d messages were written twice and refused: content alone kept them out", e.Duplicates)
			}
			f.exactlyBelowCursor("t_kill")
			f.want(strconv.Itoa(killGood), "SELECT count(DISTINCT partner_id) FROM connector.t_kill")
			f.want("1", "SELECT count(*) FROM connector.t_kill WHERE added_late = 1")
		})
	}
}

// dieAt starts a sidecar that kills itself at a step, asks for a run, and returns when the process is gone.
func (f *fixture) dieAt(k kill) (runID string) {
	f.Helper()
	_, ended := f.startChild(fmt.Sprintf("%s@%d", k.step, k.nth))
	runID = f.text("connector.run('kill')")
	select {
	case <-ended:
	case <-time.After(60 * time.Second):
		f.Fatalf("step %s was not reached %d times", k.step, k.nth)
	}
	return runID
}

// exactlyBelowCursor compares rows and dead letters with the positions, whatever has just died.
func (f *fixture) exactlyBelowCursor(table string) {
	f.Helper()
	below := f.text("SELECT coalesce(sum(next_offset), 0) FROM connector._cursor")
	rows := "0"
	if f.text("SELECT to_regclass('connector."+table+"')") != "<null>" {
		rows = f.text("SELECT count(*) FROM connector." + table)
		f.want("0", "SELECT count(*) - count(DISTINCT _source) FROM connector."+table)
	}
	letters := f.text("SELECT count(*) FROM connector.dlq")
	f.want(below, "SELECT $1::bigint + $2::bigint", rows, letters)
}
