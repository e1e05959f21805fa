package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"

	"highwater/queue/worker"
	"highwater/sidecar/seal"
	"highwater/sql/store"
)

// keyTries is how often a start looks again when another process made the key, or its file, at the same moment.
const keyTries = 3

// keyring holds the private key that opens this database's secrets. It is safe for concurrent use.
type keyring struct {
	path  string // of the key file; empty: no key, and nothing opens
	named bool   // somebody chose the path
	store *store.Store
	log   *slog.Logger

	mu  sync.Mutex
	key *seal.Key
}

// start takes the key from its file, or makes it where this is the database's first sidecar. A file whose key is not the
// database's, and a missing one where the database has a key, are faults of configuration.
func (k *keyring) start(ctx context.Context) error {
	if k.path == "" {
		return nil
	}
	for range keyTries {
		row, _, err := k.store.SealKey(ctx)
		if err == nil {
			return k.take(row)
		}
		if !errors.Is(err, store.ErrNoSealKey) {
			return &Error{Exit: ExitDatabase, Err: err}
		}
		if made, err := k.first(ctx); made || err != nil {
			return err
		}
	}
	return &Error{Exit: ExitDatabase, Err: errors.New("the key of the secrets keeps changing; start again")}
}

// take makes the file's key ours if it is the database's. A rotation that was cut off between the database and the file has
// left the new key beside it: it is finished here.
func (k *keyring) take(row store.SealKey) error {
	if public, err := seal.ParsePublic(row.Public); err != nil || public.Fingerprint() != row.Fingerprint {
		return &Error{Exit: ExitConfiguration, Err: fmt.Errorf("the database's key for secrets is not the one of its fingerprint %s: somebody changed connector._seal_key", row.Fingerprint)}
	}
	key, err := seal.Load(k.path)
	if err == nil && key.Fingerprint() == row.Fingerprint {
		k.hold(key)
		return nil
	}
	if next, nextErr := seal.Load(seal.Next(k.path)); nextErr == nil && next.Fingerprint() == row.Fingerprint {
		if err := seal.Replace(k.path); err != nil && !errors.Is(err, fs.ErrNotExist) { // another process has just done it
			return &Error{Exit: ExitConfiguration, Err: err}
		}
		k.log.Info("finished a rotation of the key that was cut off", "file", k.path, "fingerprint", row.Fingerprint)
		k.hold(next)
		return nil
	}
	return &Error{Exit: ExitConfiguration, Err: foreign(k.path, row, key, err)}
}

// foreign says why a key file does not do.
func foreign(path string, row store.SealKey, key *seal.Key, err error) error {
	const cure = "copy the file of the sidecar that has it and name it in HIGHWATER_KEY_FILE; only if it is lost for good: highwater reseal -lost, which erases every secret"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("this database's secrets are sealed to key %s, and there is no key file %s; %s", row.Fingerprint, path, cure)
	case err != nil:
		return err
	}
	return fmt.Errorf("the key file %s holds key %s, and this database's secrets are sealed to key %s; %s", path, key.Fingerprint(), row.Fingerprint, cure)
}

// first makes this sidecar's key the database's. It tells whether that is done; if not, another one was first, or has just
// made the file.
func (k *keyring) first(ctx context.Context) (bool, error) {
	key, err := seal.Load(k.path)
	keep := func() error { return nil }
	if errors.Is(err, fs.ErrNotExist) {
		if key, err = seal.Generate(); err == nil {
			keep = func() error { return key.Create(k.path) }
		}
	}
	if err != nil {
		return false, &Error{Exit: ExitConfiguration, Err: err}
	}
	row, err := publicRow(key)
	if err != nil {
		return false, &Error{Exit: ExitConfiguration, Err: err}
	}
	var file error
	added, err := k.store.AddSealKey(ctx, row, func() error { file = keep(); return file })
	switch {
	case errors.Is(file, fs.ErrExist):
		return false, nil
	case file != nil && !k.named:
		// Whoever uses no secrets needs no key, and a service without a home of its own should still serve.
		k.log.Warn("the key file cannot be made, so this database has no registry of secrets yet; name a place for it with HIGHWATER_KEY_FILE", "file", k.path, "error", file)
		return true, nil
	case file != nil:
		return false, &Error{Exit: ExitConfiguration, Err: fmt.Errorf("%w; name a place for it with -key-file or HIGHWATER_KEY_FILE", file)}
	case err != nil:
		return false, &Error{Exit: ExitDatabase, Err: err}
	case added:
		k.log.Info("this sidecar made the database's key for secrets; every other sidecar needs the same file", "file", k.path, "fingerprint", row.Fingerprint)
		k.hold(key)
	}
	return added, nil
}

func publicRow(key *seal.Key) (store.SealKey, error) {
	public, err := key.Bytes()
	if err != nil {
		return store.SealKey{}, err //nolint:wrapcheck // seal says what it was doing
	}
	return store.SealKey{Fingerprint: key.Fingerprint(), ID: key.ID(), Public: public}, nil
}

func (k *keyring) hold(key *seal.Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.key = key
}

// lookup gives what a tenant's registry holds under the names; it is the worker's hook. A value that does not open is told
// apart from one that is not there, so that nobody falls back on another credential unseen.
func (k *keyring) lookup(ctx context.Context, tenant int64, names []string) (worker.Found, error) {
	found := worker.Found{Values: map[string]string{}, Unopened: map[string]string{}}
	sealed, err := k.store.Secrets(ctx, tenant, names)
	if err != nil {
		return found, err //nolint:wrapcheck // store names the call
	}
	for name, message := range sealed {
		key := k.holderOf(seal.Recipient(message))
		if key == nil {
			found.Unopened[name] = "it is sealed to key " + seal.Recipient(message) + ", which is not in this sidecar's key file"
			continue
		}
		value, err := key.Open(seal.Name{Tenant: tenant, Name: name}, message)
		if err != nil {
			found.Unopened[name] = err.Error()
			continue
		}
		found.Values[name] = value
	}
	return found, nil
}

// holderOf gives the key of an id, nil where we do not have it. A key that we do not hold may have come by a rotation: the
// file, and the one that a rotation lays beside it, are looked at again.
func (k *keyring) holderOf(id string) *seal.Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != nil && k.key.ID() == id {
		return k.key
	}
	if k.path == "" {
		return nil
	}
	for _, path := range []string{k.path, seal.Next(k.path)} {
		if key, err := seal.Load(path); err == nil && key.ID() == id {
			k.log.Info("took up a new key for secrets", "file", path, "fingerprint", key.Fingerprint())
			k.key = key
			return key
		}
	}
	return nil
}
