package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"highwater/sql/stmt"
)

// SealKey is the database's public key, by which secrets are sealed. What is in it, package seal of the sidecar knows.
type SealKey struct {
	Fingerprint string // 40 hexadecimal digits
	ID          string // of the subkey that values are sealed to, 16 hexadecimal digits
	Public      []byte
}

var (
	// ErrNoSealKey is returned where no sidecar has made the database's key yet.
	ErrNoSealKey = errors.New("secrets have no key in this database yet; the first sidecar makes it: highwater serve")
	// ErrOtherKey is returned where the database's key is no longer the one that the caller knows.
	ErrOtherKey = errors.New("the database's key was replaced meanwhile")
)

// SealKey gives the database's key and the session's tenant, nil where it has none. It returns [ErrNoSealKey] before the
// first sidecar.
func (s *Store) SealKey(ctx context.Context) (k SealKey, tenant *int64, err error) {
	err = s.pool.QueryRow(ctx, stmt.SealKey).Scan(&k.Fingerprint, &k.ID, &k.Public, &tenant)
	if errors.Is(err, pgx.ErrNoRows) {
		return SealKey{}, nil, ErrNoSealKey
	}
	if err != nil {
		return SealKey{}, nil, fmt.Errorf("reading the key of the secrets: %w", err)
	}
	return k, tenant, nil
}

// AddSealKey makes k the database's key unless there is one, which it tells. keep is called before the commit, so that the
// private key is on a disk first; its error comes back as it is, and nothing was stored.
func (s *Store) AddSealKey(ctx context.Context, k SealKey, keep func() error) (added bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, stmt.SealKeyAdd, k.Fingerprint, k.ID, k.Public, s.sidecar)
		if err != nil {
			return fmt.Errorf("storing the key of the secrets: %w", err)
		}
		if added = tag.RowsAffected() == 1; !added {
			return nil
		}
		return keep()
	})
	return added && err == nil, err
}

// Secrets gives those of the named secrets that a tenant has, sealed, by name.
func (s *Store) Secrets(ctx context.Context, tenant int64, names []string) (map[string][]byte, error) {
	rows, err := s.pool.Query(ctx, stmt.SecretGet, tenant, names)
	if err != nil {
		return nil, fmt.Errorf("looking secrets up: %w", err)
	}
	found := map[string][]byte{}
	var name string
	var sealed []byte
	if _, err := pgx.ForEachRow(rows, []any{&name, &sealed}, func() error {
		found[name], sealed = sealed, nil // the next row gets memory of its own
		return nil
	}); err != nil {
		return nil, fmt.Errorf("looking secrets up: %w", err)
	}
	return found, nil
}

// Secret is one stored secret.
type Secret struct {
	Tenant int64
	Name   string
	Sealed []byte
}

// Reseal replaces the database's key, which must still have the fingerprint old, and stores every secret as again seals it,
// in one transaction; it tells how many. Where again is nil every secret is erased instead. No secret is set meanwhile, and
// after any error (but that of the commit itself, of which nobody knows) everything is as before.
func (s *Store) Reseal(ctx context.Context, old string, next SealKey, again func(Secret) ([]byte, error)) (n int, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var now string
		if err := tx.QueryRow(ctx, stmt.SealKeyHold).Scan(&now); err != nil {
			return fmt.Errorf("holding the key of the secrets: %w", err)
		}
		if now != old {
			return ErrOtherKey
		}
		rows, err := tx.Query(ctx, stmt.SecretAll)
		if err != nil {
			return fmt.Errorf("reading the secrets: %w", err)
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Secret])
		if err != nil {
			return fmt.Errorf("reading the secrets: %w", err)
		}
		n = len(all)
		if err := rewrite(ctx, tx, all, again); err != nil {
			return err
		}
		if err := account(ctx, tx, old, next, all, again != nil); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, stmt.SealKeyReplace, next.Fingerprint, next.ID, next.Public, s.sidecar); err != nil {
			return fmt.Errorf("replacing the key of the secrets: %w", err)
		}
		return nil
	})
	return n, err
}

func rewrite(ctx context.Context, tx pgx.Tx, all []Secret, again func(Secret) ([]byte, error)) error {
	if again == nil {
		if _, err := tx.Exec(ctx, stmt.SecretErase); err != nil {
			return fmt.Errorf("erasing the secrets: %w", err)
		}
		return nil
	}
	for _, one := range all {
		sealed, err := again(one)
		if err != nil {
			return fmt.Errorf("secret %q of tenant %d: %w", one.Name, one.Tenant, err)
		}
		if _, err := tx.Exec(ctx, stmt.SecretReseal, one.Tenant, one.Name, sealed); err != nil {
			return fmt.Errorf("storing secret %q of tenant %d: %w", one.Name, one.Tenant, err)
		}
	}
	return nil
}

// account leaves a line in the audit trail of every tenant that had a secret.
func account(ctx context.Context, tx pgx.Tx, old string, next SealKey, all []Secret, kept bool) error {
	action := "secrets_resealed"
	if !kept {
		action = "secrets_erased"
	}
	names := map[int64][]string{}
	for _, one := range all {
		names[one.Tenant] = append(names[one.Tenant], one.Name)
	}
	for tenant, list := range names {
		detail := map[string]any{"names": list, "from": old, "to": next.Fingerprint}
		if _, err := tx.Exec(ctx, stmt.SecretAudit, tenant, action, detail); err != nil {
			return fmt.Errorf("recording the rotation: %w", err)
		}
	}
	return nil
}
