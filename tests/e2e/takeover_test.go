package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Spec 3.3: how soon another sidecar takes a run over whose holder died, or is paused inside a transaction.
const (
	takeover       = 20 * time.Second
	takeoverPaused = 40 * time.Second
)

// The topic of these tests: partners in chunks so small that there is always a next one.
const (
	longMessages = 20_000
	longChunk    = 100
)

// long makes a connector whose run lasts for seconds.
func (f *fixture) long(name string) {
	f.Helper()
	topic := f.topic(name, 2, nil)
	f.produce(topic, 0, partners(0, longMessages/2)...)
	f.produce(topic, 1, partners(longMessages/2, longMessages/2)...)
	f.declare(name, topic, fmt.Sprintf(`,"chunk_rows":%d`, longChunk))
}

// whole checks that a table holds every partner of a long run once.
func (f *fixture) whole(name string) {
	f.Helper()
	f.want(fmt.Sprintf("%d %d %d", longMessages, longMessages, longMessages),
		"SELECT concat_ws(' ', count(*), count(DISTINCT _source), count(DISTINCT partner_id)) FROM connector.t_"+name)
}

// chunks waits until a run has landed so many chunks.
func (f *fixture) chunks(runID string, n int) {
	f.Helper()
	f.until("SELECT chunks >= $2::int FROM connector.runs WHERE run_id = $1", runID, n)
}

// holder is the process that works on a run: a sidecar's name is host-pid-mark.
func (f *fixture) holder(runID string) int {
	f.Helper()
	name := f.text("SELECT sidecar FROM connector.runs WHERE run_id = $1", runID)
	m := regexp.MustCompile(`-(\d+)-[0-9a-f]{8}$`).FindStringSubmatch(name)
	if m == nil {
		f.Fatalf("sidecar %q names no process", name)
	}
	pid, _ := strconv.Atoi(m[1])
	return pid
}

// A sidecar is killed while another one runs: that one takes the run over by itself, at the stored position.
func TestAnotherSidecarTakesOver(t *testing.T) {
	f := onFake(t)
	f.long("over")
	one, two := f.startSidecar("-"), f.startSidecar("-")
	f.until("SELECT count(*) = 2 FROM connector.sidecars")
	runID := f.ask("over")
	f.chunks(runID, 5)
	died := f.holder(runID)
	begun := time.Now()
	if err := syscall.Kill(died, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.exactlyBelowCursor("t_over")
	f.until("SELECT count(*) > 0 FROM connector.log WHERE run_id = $1 AND message LIKE 'taken over by sidecar %'", runID)
	took := time.Since(begun)
	t.Logf("the run was taken over after %s", took.Round(time.Millisecond))
	if took > takeover {
		t.Errorf("the run was taken over after %s, promised are %s", took, takeover)
	}
	e := f.wait(runID)
	if e.RunID != runID || e.Status != "Completed" || e.RecordsIn != longMessages || e.RecordsOut != longMessages {
		t.Errorf("after the takeover: %+v", e)
	}
	if lives := one.Pid + two.Pid - died; f.holder(runID) != lives {
		t.Errorf("process %d ended the run, want %d", f.holder(runID), lives)
	}
	f.whole("over")
}

// stopped waits until a process stands still by SIGSTOP.
func (p *process) stopped(f *fixture) {
	f.Helper()
	for deadline := time.Now().Add(signalWait); ; {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
		if err != nil {
			f.Fatal(err)
		}
		if _, rest, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(rest, "T") {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("process %d was not stopped", p.Pid)
		}
		receive(f, "a pause", time.After(lookEvery))
	}
}

// A sidecar is paused in the middle of a chunk for longer than its lease. Another one takes the run over and ends it; the
// paused one believes that it still holds everything, and finds itself fenced when it goes on. It serves on after that.
func TestAPausedSidecarIsFenced(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"begin", "copied", "commit-sent", "committed"} {
		t.Run(step, func(t *testing.T) {
			f := onFake(t)
			f.long("pause")
			paused := f.startSidecar("stop:" + step + "@3")
			f.until("SELECT count(*) = 1 FROM connector.sidecars")
			runID := f.ask("pause")
			paused.stopped(f)
			begun := time.Now()
			other := f.startSidecar("-")
			f.until("SELECT count(*) > 0 FROM connector.log WHERE run_id = $1 AND message LIKE 'taken over by sidecar %'", runID)
			took := time.Since(begun)
			t.Logf("the run was taken over after %s", took.Round(time.Millisecond))
			if most := map[bool]time.Duration{true: takeoverPaused, false: takeover}[step == "copied" || step == "commit-sent"]; took > most {
				t.Errorf("the run was taken over after %s, promised are %s", took, most)
			}
			f.chunks(runID, 5)
			if err := paused.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			e := f.wait(runID)
			if e.RunID != runID || e.Status != "Completed" || e.RecordsIn != longMessages || e.RecordsOut != longMessages || e.Duplicates != 0 {
				t.Errorf("after the takeover: %+v", e)
			}
			f.whole("pause")
			if f.holder(runID) != other.Pid {
				t.Errorf("process %d ended the run, want %d", f.holder(runID), other.Pid)
			}
			f.served(paused, other)
			f.says(paused.log.String(), "fenced")
		})
	}
}

// served checks that a sidecar that was paused carries runs out again, once the other is gone.
func (f *fixture) served(paused, other *process) {
	f.Helper()
	_ = other.Kill()
	receive(f, "the other's end", other.ended)
	f.exec("SELECT connector.reset_cursor('pause')")
	if e := f.run("pause"); e.Status != "Completed" || e.Duplicates != longMessages || f.holder(e.RunID) != paused.Pid {
		f.Errorf("the sidecar that was paused: %+v", e)
	}
}

// Fifty connectors at once, two sidecars: each runs once, and both work.
func TestFiftyConnectorsTwoSidecars(t *testing.T) {
	f := onFake(t)
	topic := f.topic("fifty", 2, nil)
	f.produce(topic, 0, partners(0, 50)...)
	f.produce(topic, 1, partners(50, 50)...)
	const connectors = 50
	for i := range connectors {
		f.declare(fmt.Sprintf("c%d", i), topic, "")
	}
	one, two := f.sidecar(nil), f.sidecar(nil)
	begun := time.Now()
	f.exec("SELECT connector.run(name) FROM connector.manifest")
	f.until("SELECT NOT EXISTS (SELECT FROM connector.runs WHERE ended_at IS NULL)")
	t.Logf("%d runs took %s", connectors, time.Since(begun).Round(time.Millisecond))
	f.want("50 50 5000", "SELECT concat_ws(' ', count(*), count(DISTINCT connector), sum(records_out)) FROM connector.runs WHERE status = 'Completed' AND duplicates = 0")
	f.until("SELECT count(*) = 50 FROM connector_queue.river_job WHERE state = 'completed' AND attempt = 1") // River writes these down a moment later
	for i := range connectors {
		f.want("100", fmt.Sprintf("SELECT count(DISTINCT partner_id) FROM connector.t_c%d", i))
	}
	for _, s := range []string{one.Name(), two.Name()} {
		if n := f.text("SELECT count(*) FROM connector.runs WHERE sidecar = $1", s); n == "0" {
			t.Errorf("sidecar %s did nothing", s)
		} else {
			t.Logf("sidecar %s did %s", s, n)
		}
	}
}

// Notifications are hints: whichever is lost, a run begins within the poll, and a cancel is heard within a look.
func TestLostNotifications(t *testing.T) {
	t.Parallel()
	const poll = 3 * time.Second // a second, on a machine that has much else to do
	late := func(f *fixture, runID string) {
		f.Helper()
		f.ends(f.wait(runID), "Completed", "ok")
		late := f.text("SELECT extract(epoch FROM started_at - scheduled_at) FROM connector.runs WHERE run_id = $1", runID)
		f.Logf("the run began after %s s", late)
		if s, err := strconv.ParseFloat(late, 64); err != nil || s > poll.Seconds() {
			f.Errorf("the run began after %s s, want it within the poll", late)
		}
	}
	t.Run("the listening sessions are ended", func(t *testing.T) {
		f := onFake(t)
		topic := f.topic("deaf", 1, nil)
		f.produce(topic, 0, partners(0, 10)...)
		f.sidecar(nil)
		f.declare("deaf", topic, "")
		before := f.text("SELECT backend_pid FROM connector._sidecar")
		const listening = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND (query ILIKE 'listen%' OR pid = $1::int)"
		f.until("SELECT count(*) >= 2 "+listening, before)
		f.exec("SELECT pg_terminate_backend(pid) "+listening, before)
		late(f, f.ask("deaf"))
		f.until("SELECT backend_pid <> $1::int FROM connector._sidecar", before)
	})
	t.Run("none is ever sent", func(t *testing.T) {
		f := onFake(t)
		f.long("mute")
		topic := f.topic("mute2", 1, nil)
		f.produce(topic, 0, partners(0, 10)...)
		f.exec("CREATE OR REPLACE FUNCTION connector._wake() RETURNS void LANGUAGE sql SET search_path = pg_catalog, pg_temp AS 'SELECT'")
		f.sidecar(nil)
		f.declare("mute2", topic, "")
		late(f, f.ask("mute2"))
		runID := f.ask("mute")
		f.chunks(runID, 1)
		f.exec("UPDATE connector._run SET cancel_requested = true WHERE run_id = $1", runID) // as connector.cancel does, without a word
		f.ends(f.wait(runID), "Cancelled", "cancelled")
	})
}
