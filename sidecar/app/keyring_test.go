package app

import (
	"context"
	"log/slog"
	"testing"

	"highwater/sidecar/config"
	"highwater/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// A user without a home that can be written to still serves, unless somebody chose the place of the key.
func TestAKeyFileThatCannotBeMade(t *testing.T) {
	url := harness.Database(t)
	const nowhere = "/proc/highwater/key.asc"
	for _, c := range []struct {
		name  string
		named bool
		exit  int
	}{
		{"the default place is only a warning", false, ExitOK},
		{"a chosen place is a fault of configuration", true, ExitConfiguration},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Start(t.Context(), Options{
				Config: config.Config{DatabaseURL: url, MaxRuns: 1, MemoryMiB: 256, KeyFile: nowhere, KeyFileNamed: c.named},
				Logger: slog.New(slog.DiscardHandler),
			})
			if ExitCode(err) != c.exit {
				t.Fatalf("exit code %d, want %d: %v", ExitCode(err), c.exit, err)
			}
			if err == nil {
				if err := s.Stop(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
