package harness

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"highwater/sidecar/seal"
)

var keyFile = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "highwater-test-key-*")
	if err != nil {
		return "", err
	}
	atExit(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "key.asc")
	key, err := seal.Generate()
	if err != nil {
		return "", err
	}
	return path, key.Create(path)
})

// KeyFile is a private key for secrets that all sidecars of this test process may share; gone when it ends.
func KeyFile(tb testing.TB) string {
	tb.Helper()
	path, err := keyFile()
	if err != nil {
		tb.Fatalf("making a key: %v", err)
	}
	return path
}
