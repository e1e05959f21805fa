package harness

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if note := os.Getenv(heldEnv); note != "" {
		fmt.Fprintln(os.Stderr, hold(note))
		os.Exit(1)
	}
	Main(m)
}

func TestADatabaseHasTheMigrations(t *testing.T) {
	pool := Pool(t, Database(t))
	var n int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM connector._migration").Scan(&n); err != nil || n == 0 {
		t.Fatalf("%d migrations, %v", n, err)
	}
}
