package postgres

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"highwater/sidecar/demo/child"
)

const (
	// fastWait and immediateWait bound how long each kind of shutdown may take before the next harder one.
	fastWait      = 20 * time.Second
	immediateWait = 5 * time.Second

	// pollFirst and pollMost are the pauses between two looks at a server that does not answer yet.
	pollFirst = 5 * time.Millisecond
	pollMost  = 100 * time.Millisecond

	// predecessorWait bounds how long a start waits for the remains of a killed server to go.
	predecessorWait = 10 * time.Second

	// logTailBytes is how much of the server's log an error shows.
	logTailBytes = 2048
)

// Mode is a way to halt the server.
type Mode int

// Fast rolls back open transactions and shuts down cleanly; Immediate aborts without writing anything, so the next start
// recovers from the WAL; Sigkill kills the postmaster alone, and its backends notice and follow.
const (
	Fast Mode = iota
	Immediate
	Sigkill
)

// Halt ends the server and keeps its data; a halted server is no error.
func (s *Server) Halt(mode Mode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	var steps []child.Step
	if mode == Fast {
		steps = append(steps, child.Step{Signal: syscall.SIGINT, Wait: fastWait})
	}
	if mode != Sigkill {
		steps = append(steps, child.Step{Signal: syscall.SIGQUIT, Wait: immediateWait})
	}
	if err := s.process.Stop(steps...); err != nil {
		return fmt.Errorf("halting PostgreSQL: %w", err)
	}
	s.process = nil
	return nil
}

// Resume starts a halted server again on the same port and returns when it answers.
func (s *Server) Resume(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		return nil
	}
	deadline := time.Now().Add(predecessorWait)
	for pause := pollFirst; ; pause = min(2*pause, pollMost) {
		logStart, err := s.launch()
		if err != nil {
			return err
		}
		err = s.waitReady(ctx)
		if err == nil {
			return nil
		}
		_ = s.process.Stop() // it has ended already, or does not answer: nothing to save
		s.process = nil
		text := s.logSince(logStart)
		if strings.Contains(text, "could not bind") {
			return fmt.Errorf("starting PostgreSQL on port %d: %w", s.port, ErrPortTaken)
		}
		if !predecessorLives(text) || time.Now().After(deadline) {
			return fmt.Errorf("PostgreSQL did not start on port %d: %w; its log ends: %s", s.port, err, tail(text))
		}
		if err := sleep(ctx, pause); err != nil {
			return fmt.Errorf("waiting for an earlier PostgreSQL to end: %w", err)
		}
	}
}

// predecessorLives recognises a start that fails only because a killed server's processes are still going away.
func predecessorLives(log string) bool {
	return strings.Contains(log, "pre-existing shared memory block") || strings.Contains(log, `lock file "postmaster.pid" already exists`)
}

// launch starts the program and returns the size of the log before it.
func (s *Server) launch() (int64, error) {
	log, err := os.OpenFile(s.LogPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, fmt.Errorf("opening the server log: %w", err)
	}
	defer log.Close()
	size, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, fmt.Errorf("opening the server log: %w", err)
	}
	// SIGINT asks PostgreSQL for a fast, clean shutdown, so even a killed parent leaves good data behind.
	s.process, err = child.Start(child.Spec{
		Path:       s.binaries.path("postgres"),
		Args:       s.arguments(),
		Dir:        s.dir,
		Env:        environment(),
		Log:        log,
		Death:      syscall.SIGINT,
		Credential: s.account.credential(),
	})
	if err != nil {
		return 0, err
	}
	return size, nil
}

// arguments are the server's command line: what makes it private first, then the caller's settings in a stable order.
func (s *Server) arguments() []string {
	args := []string{
		"-D", s.dataDir(),
		"-c", "listen_addresses=127.0.0.1",
		"-c", "port=" + strconv.Itoa(s.port),
		"-c", "unix_socket_directories=",
		"-c", "logging_collector=off",
	}
	names := make([]string, 0, len(s.options.Settings))
	for name := range s.options.Settings {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		args = append(args, "-c", name+"="+s.options.Settings[name])
	}
	return args
}

// environment is ours without the libpq and locale variables that would change the server.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "PG") || strings.HasPrefix(entry, "LC_") || strings.HasPrefix(entry, "LANG")
	})
}

// waitReady connects until the server answers, the server ends or ctx is over.
func (s *Server) waitReady(ctx context.Context) error {
	// A connection attempt can hang on a foreign listener that took the port, so the server's end cancels it too.
	attempt, cancel := context.WithCancel(ctx)
	defer cancel()
	exited := s.process.Exited() // the goroutine may outlive the lock under which process is read
	go func() {
		select {
		case <-exited:
			cancel()
		case <-attempt.Done():
		}
	}()
	for pause := pollFirst; ; pause = min(2*pause, pollMost) {
		err := s.answers(attempt)
		if err == nil {
			return nil
		}
		if sleep(attempt, pause) == nil {
			continue
		}
		if ctx.Err() != nil {
			return fmt.Errorf("it did not answer in time: %w (last answer: %w)", context.Cause(ctx), err)
		}
		return fmt.Errorf("it ended at once: %v", s.process.Err()) //nolint:errorlint // a clean exit (nil) is a failure too
	}
}

// answers makes one connection and checks that it is our server, not another one that took the port first.
func (s *Server) answers(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var dir string
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.current_setting('data_directory')").Scan(&dir); err != nil {
		return err
	}
	if dir != s.dataDir() {
		return fmt.Errorf("data folder %s: %w", dir, ErrPortTaken)
	}
	return nil
}

func (s *Server) logSince(start int64) string {
	file, err := os.Open(s.LogPath())
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if _, err := file.Seek(start, io.SeekStart); err != nil {
		return err.Error()
	}
	text, err := io.ReadAll(io.LimitReader(file, 1<<20))
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text))
}

func tail(text string) string {
	if len(text) > logTailBytes {
		return "..." + text[len(text)-logTailBytes:]
	}
	return text
}

// sleep waits for d or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
