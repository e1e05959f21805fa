package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// dataDir is the server's data folder inside ours; the log lies beside it, so that the data folder holds nothing foreign.
func (s *Server) dataDir() string { return filepath.Join(s.dir, "data") }

// makeDir makes our folder, resolves it (the server reports its data folder resolved) and gives it to the server's user.
func (s *Server) makeDir() (err error) {
	if s.options.Dir == "" {
		err = s.makeTemporary()
	} else {
		s.dir, err = filepath.Abs(s.options.Dir)
		err = errors.Join(err, os.MkdirAll(s.dir, 0o700))
	}
	if err != nil {
		return fmt.Errorf("making the data folder: %w", err)
	}
	if s.dir, err = filepath.EvalSymlinks(s.dir); err != nil {
		return fmt.Errorf("resolving the data folder: %w", err)
	}
	if err := s.account.own(s.dir); err != nil {
		return err
	}
	return s.account.canReach(s.dir)
}

// initdb fills the data folder if there is none. It works in a folder beside it and renames that at the end,
// so an initdb that was killed half way is simply done again.
func (s *Server) initdb(ctx context.Context) error {
	if _, err := os.Stat(s.dataDir()); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	fresh := s.dataDir() + ".new"
	var output string
	var err error
	// Not every C library knows C.UTF-8; C sorts alike and only knows fewer letters.
	for _, locale := range []string{"C.UTF-8", "C"} {
		if err := os.RemoveAll(fresh); err != nil {
			return fmt.Errorf("removing the remains of an earlier initdb: %w", err)
		}
		output, err = s.runInitdb(ctx, fresh, locale)
		if err == nil {
			return os.Rename(fresh, s.dataDir())
		}
		if !strings.Contains(output, "locale") {
			break
		}
	}
	return fmt.Errorf("initdb in %s: %w: %s", s.dir, err, tail(output))
}

func (s *Server) runInitdb(ctx context.Context, dir, locale string) (string, error) {
	cmd := exec.CommandContext(ctx, s.binaries.path("initdb"),
		"-D", dir, "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale="+locale, "--no-sync")
	cmd.Dir = s.dir
	cmd.Env = environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.account.credential()}
	output, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(output)), err
}
