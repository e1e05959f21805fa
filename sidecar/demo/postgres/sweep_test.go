package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestSweepRemovesOnlyWhatKilledProcessesLeft(t *testing.T) {
	long := time.Now().Add(-2 * sweepAge)
	for _, c := range []struct {
		name, folder string
		locked, old  bool
		want         bool // stays
	}{
		{"left by a killed process", temporaryPrefix + "1", false, true, false},
		{"in use", temporaryPrefix + "2", true, true, true},
		{"being made", temporaryPrefix + "3", false, false, true},
		{"somebody else's", "other-1", false, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			parent := t.TempDir()
			folder := filepath.Join(parent, c.folder)
			if err := os.MkdirAll(filepath.Join(folder, "data"), 0o755); err != nil {
				t.Fatal(err)
			}
			file, err := os.Create(filepath.Join(folder, lockName))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if c.locked {
				if err := lockFile(file); err != nil {
					t.Fatal(err)
				}
			}
			if c.old {
				if err := os.Chtimes(file.Name(), long, long); err != nil {
					t.Fatal(err)
				}
			}
			sweep(parent)
			if _, err := os.Stat(folder); (err == nil) != c.want || (err != nil && !errors.Is(err, os.ErrNotExist)) {
				t.Errorf("the folder stays: %v, want %v (%v)", err == nil, c.want, err)
			}
		})
	}
}

func TestARunningServerHoldsItsTemporaryFolder(t *testing.T) {
	server := start(t, Options{})
	long := time.Now().Add(-2 * sweepAge)
	if err := os.Chtimes(filepath.Join(server.dir, lockName), long, long); err != nil {
		t.Fatal(err)
	}
	sweep(os.TempDir())
	if got := text(t, connect(t, server.URL("postgres")), "SELECT 'here'"); got != "here" {
		t.Errorf("got %q", got)
	}
	if _, err := os.Stat(server.dataDir()); err != nil {
		t.Error(err)
	}
}
