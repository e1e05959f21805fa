package harness

import "testing"

func TestMain(m *testing.M) { Main(m) }

func TestADatabaseHasTheMigrations(t *testing.T) {
	pool := Pool(t, Database(t))
	var n int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM connector._migration").Scan(&n); err != nil || n == 0 {
		t.Fatalf("%d migrations, %v", n, err)
	}
}
