// Package cache keeps folders that are expensive to make (unpacked servers, downloaded jars) and makes each once,
// also when several processes want the same one at the same moment.
package cache

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// rootFolder serves root, whose own cache folder lies in a home that other users cannot enter;
// a server that root starts runs as another user and must be able to read its files.
const rootFolder = "/var/cache/highwater"

// Root is the folder that holds every cached folder: os.UserCacheDir()/highwater, or /var/cache/highwater for root.
func Root() (string, error) {
	if os.Geteuid() == 0 {
		return rootFolder, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder, set HOME or XDG_CACHE_HOME: %w", err)
	}
	return filepath.Join(dir, "highwater"), nil
}

// Folder returns the cached folder of that name and calls fill to make it when it is not there yet.
// fill gets an empty folder, which takes its final name only when fill succeeded, so a folder is whole or absent.
func Folder(name string, fill func(dir string) error) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	final := filepath.Join(root, name)
	if exists(final) {
		return final, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("making the cache folder: %w", err)
	}
	unlock, err := lock(filepath.Join(root, name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(final) { // another process made it while this one waited for the lock
		return final, nil
	}
	return final, build(root, name, fill)
}

// build fills a temporary folder beside the final one and renames it.
func build(root, name string, fill func(dir string) error) error {
	temp, err := os.MkdirTemp(root, name+".part-*")
	if err != nil {
		return fmt.Errorf("making a folder for %s: %w", name, err)
	}
	defer os.RemoveAll(temp)
	if err := fill(temp); err != nil {
		return fmt.Errorf("caching %s: %w", name, err)
	}
	if err := os.Chmod(temp, 0o755); err != nil {
		return fmt.Errorf("opening the folder of %s: %w", name, err)
	}
	if err := os.Rename(temp, filepath.Join(root, name)); err != nil {
		return fmt.Errorf("naming the folder of %s: %w", name, err)
	}
	return nil
}

// lock waits for the file's lock and returns the function that gives it back; the kernel gives it back for a process that dies.
func lock(path string) (func(), error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a lock file: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Reachable tells whether user uid with group gid can enter every folder above path and path itself, by the permission bits.
// It returns the first folder that is closed to the user, or "".
func Reachable(path string, uid, gid uint32) string {
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err == nil && info.IsDir() && !searchable(info, uid, gid) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

func searchable(info fs.FileInfo, uid, gid uint32) bool {
	mode := info.Mode().Perm()
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && owner.Uid == uid:
		return mode&0o100 != 0
	case ok && owner.Gid == gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}
