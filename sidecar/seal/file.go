package seal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// maxFile is the longest key file that is read, in bytes; ours has some 5,000.
	maxFile = 64 << 10
	// othersBits are what nobody but the owner may do with the file. A group may read it: that is how containers are handed it.
	othersBits fs.FileMode = 0o027
	// dirMode is that of the folders that are made for the file.
	dirMode fs.FileMode = 0o700
)

var errNoKey = errors.New("it holds no private key as highwater writes one, armored and without a pass phrase")

// Load reads a key file. The error is [fs.ErrNotExist] where there is none; it names the file otherwise too. A file that
// others may read, or the group may write, is refused.
func Load(path string) (*Key, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("opening the key file: %w", err)
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("looking at the key file: %w", err)
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("the key file %s is no file", path)
	case st.Mode().Perm()&othersBits != 0:
		return nil, fmt.Errorf("the key file %s has mode %04o, so others can read or change it; run: chmod 600 %s", path, st.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, fmt.Errorf("reading the key file %s: %w", path, err)
	}
	k, err := parseKey(text)
	if err != nil {
		return nil, fmt.Errorf("the key file %s: %w", path, err)
	}
	return k, nil
}

// Create writes a new key file with mode 0600, whole or not at all. An existing file stays as it is: [fs.ErrExist].
func (k *Key) Create(path string) error {
	text, err := k.armored()
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return fmt.Errorf("making the key file's folder: %w", err)
	}
	temporary, err := writeTemporary(dir, text)
	if err != nil {
		return fmt.Errorf("writing the key file: %w", err)
	}
	defer func() { _ = os.Remove(temporary) }()
	// A link, and no renaming: it never takes the place of a key that another process has made meanwhile.
	if err := os.Link(temporary, path); err != nil {
		return fmt.Errorf("making the key file: %w", err)
	}
	return syncDir(dir)
}

// writeTemporary writes a file beside the one that is meant, through to the disk.
func writeTemporary(dir string, text []byte) (string, error) {
	f, err := os.CreateTemp(dir, ".key-*") // made with mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// Next is where a rotation lays the new key until the database has taken it.
func Next(path string) string { return path + ".next" }

// Replace makes the key file at [Next] the key file, and keeps the old one aside: path, a dot, the first half of its
// fingerprint and ".old". A crash within leaves both files under a name where [Load] or the next Replace finds them.
func Replace(path string) error {
	old, err := Load(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		aside := fmt.Sprintf("%s.%s.old", path, old.Fingerprint()[:16])
		if err := os.Link(path, aside); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("keeping the old key file: %w", err)
		}
	}
	if err := os.Rename(Next(path), path); err != nil {
		return fmt.Errorf("putting the new key file in its place: %w", err)
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a folder's entries lasting.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the folder of the file that the operator names
	if err != nil {
		return fmt.Errorf("opening the key file's folder: %w", err)
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("writing the key file's folder to the disk: %w", err)
	}
	return nil
}
