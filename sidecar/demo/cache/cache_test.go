package cache_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"highwater/sidecar/demo/cache"
)

// place is a name in the real cache folder that no other test has; what it held is gone when the test ends.
func place(t *testing.T) (name string) {
	t.Helper()
	root, err := cache.Root()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(root, "test-*")
	if err != nil {
		t.Fatal(err)
	}
	name = filepath.Base(dir)
	t.Cleanup(func() {
		left, _ := filepath.Glob(dir + "*")
		for _, path := range left {
			_ = os.RemoveAll(path)
		}
	})
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestAFolderIsMadeOnceHoweverManyAsk(t *testing.T) {
	name := place(t)
	var fills atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			dir, err := cache.Folder(name, func(dir string) error {
				fills.Add(1)
				return os.WriteFile(filepath.Join(dir, "file"), []byte("whole"), 0o600)
			})
			if err != nil {
				t.Error(err)
				return
			}
			if text, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(text) != "whole" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
	all.Wait()
	if fills.Load() != 1 {
		t.Errorf("made %d times", fills.Load())
	}
}

func TestAFolderThatCouldNotBeFilledIsAbsentAndTriedAgain(t *testing.T) {
	name := place(t)
	broken := errors.New("no network")
	dir, err := cache.Folder(name, func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "half"), nil, 0o600); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatalf("folder %s, error %v; want the cause", dir, err)
	}
	dir, err = cache.Folder(name, func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the second try found %v, %v", left, err)
	}
	root := filepath.Dir(dir)
	if parts, _ := filepath.Glob(filepath.Join(root, name+".part-*")); len(parts) > 0 {
		t.Errorf("left over: %v", parts)
	}
}

func TestReachableNamesTheFirstClosedFolder(t *testing.T) {
	const stranger = 54321
	base, err := os.MkdirTemp("", "highwater-test-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	inner := filepath.Join(base, "open", "inner")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := cache.Reachable(inner, uint32(os.Geteuid()), uint32(os.Getegid())); got != "" {
		t.Errorf("closed to its owner: %s", got)
	}
	if got := cache.Reachable(inner, stranger, stranger); got != base { // MkdirTemp's folder is closed to others
		t.Errorf("closed to a stranger: %q, want %s", got, base)
	}
	if err := os.Chmod(base, 0o711); err != nil {
		t.Fatal(err)
	}
	if got := cache.Reachable(inner, stranger, stranger); got != "" {
		t.Errorf("still closed to a stranger: %s", got)
	}
}
