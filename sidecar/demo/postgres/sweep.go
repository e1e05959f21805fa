package postgres

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// temporaryPrefix begins the names of our temporary folders.
	temporaryPrefix = "highwater-postgres-"
	// lockName is the file in a temporary folder that its process keeps locked; the kernel unlocks it when the process dies.
	lockName = "lock"
	// sweepAge is how old a folder must be to be swept: one that is being made is not locked yet.
	sweepAge = time.Minute
)

// makeTemporary makes a folder in the system's folder of temporary files, locked for as long as this process or Stop lets it.
// It first removes those that killed processes have left behind, some 60 MB each.
func (s *Server) makeTemporary() (err error) {
	sweep(os.TempDir())
	if s.dir, err = os.MkdirTemp("", temporaryPrefix+"*"); err != nil {
		return err
	}
	if s.lock, err = os.Create(filepath.Join(s.dir, lockName)); err != nil {
		return err
	}
	if err := lockFile(s.lock); err != nil {
		return fmt.Errorf("locking %s: %w", s.lock.Name(), err)
	}
	return nil
}

// sweep removes the folders that nobody holds. One that is not ours to remove stays, which is no error.
func sweep(parent string) {
	locks, err := filepath.Glob(filepath.Join(parent, temporaryPrefix+"*", lockName))
	if err != nil {
		return
	}
	for _, name := range locks {
		sweepOne(name)
	}
}

func sweepOne(lockPath string) {
	file, err := os.OpenFile(lockPath, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || time.Since(info.ModTime()) < sweepAge || lockFile(file) != nil {
		return
	}
	_ = os.RemoveAll(filepath.Dir(lockPath))
}

// lockFile takes the lock or fails at once.
func lockFile(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
