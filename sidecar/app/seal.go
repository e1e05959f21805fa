package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/term"

	"highwater/sidecar/config"
	"highwater/sidecar/seal"
	"highwater/sql/store"
)

// secretName is what connector.secret_set takes for a name.
var secretName = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,128}$`)

// sealValue is `highwater seal NAME`: the statement that stores a value which nobody saw.
func sealValue(ctx context.Context, c console) error {
	fs := flag.NewFlagSet("seal", flag.ContinueOnError)
	fs.SetOutput(c.err)
	url := fs.String("database-url", "", "the database whose key seals (HIGHWATER_DATABASE_URL)")
	tenant := fs.Int64("tenant", 0, "the tenant that the secret is for; default: that of the session, connector.current_tenant()")
	if err := fs.Parse(c.args); err != nil {
		return fmt.Errorf("%w: %w", config.ErrUsage, err)
	}
	if fs.NArg() != 1 || !secretName.MatchString(fs.Arg(0)) {
		return fmt.Errorf("%w: give one name of letters, digits and . _ / - (and never the value): highwater seal ACME_KAFKA_PW", config.ErrUsage)
	}
	public, session, err := c.publicKey(ctx, *url)
	if err != nil {
		return err
	}
	n := seal.Name{Tenant: *tenant, Name: fs.Arg(0)}
	if n.Tenant == 0 {
		if session == nil {
			return &Error{Exit: ExitConfiguration, Err: errors.New("the session has no tenant; say which with -tenant")}
		}
		n.Tenant = *session
	}
	value, err := readValue(os.Stdin, c.err, n.Name)
	if err != nil {
		return &Error{Exit: ExitUsage, Err: err}
	}
	sealed, err := public.Seal(n, value)
	if err != nil {
		return &Error{Exit: ExitUsage, Err: err}
	}
	fmt.Fprintf(c.err, "-- sealed for tenant %d to key %s\n", n.Tenant, public.Fingerprint())
	fmt.Fprintf(c.out, "SELECT connector.secret_set('%s', '%s');\n", n.Name, seal.Text(sealed))
	return nil
}

// publicKey asks the database, with an operator's rights, what to seal to.
func (c console) publicKey(ctx context.Context, url string) (public seal.Public, tenant *int64, err error) {
	args := []string{}
	if url != "" {
		args = append(args, "-database-url", url)
	}
	cfg, err := settings(console{args: args, lookup: c.lookup, err: c.err})
	if err != nil {
		return public, nil, err
	}
	pool, err := openPool(ctx, cfg)
	if err != nil {
		return public, nil, err
	}
	defer pool.Close()
	row, tenant, err := store.New(pool, "seal").SealKey(ctx)
	if err != nil {
		return public, nil, &Error{Exit: ExitDatabase, Err: err}
	}
	if public, err = seal.ParsePublic(row.Public); err != nil {
		return public, nil, &Error{Exit: ExitDatabase, Err: err}
	}
	return public, tenant, nil
}

// readValue reads a value: one line without echo from a terminal, else everything there is, less the last line's end.
func readValue(in, prompt *os.File, name string) (string, error) {
	if term.IsTerminal(int(in.Fd())) {
		fmt.Fprintf(prompt, "Value of %s (not shown): ", name)
		b, err := term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(prompt)
		if err != nil {
			return "", fmt.Errorf("reading the value: %w", err)
		}
		return string(b), nil
	}
	b, err := io.ReadAll(io.LimitReader(in, seal.MaxValue+3)) // the limit, a line's end, and one byte too many
	if err != nil {
		return "", fmt.Errorf("reading the value: %w", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), nil
}

// reseal is `highwater reseal`: a new key pair, every secret sealed to it. The new key is on the disk before the database
// takes it, and in the old one's place after; a crash between leaves what the next start, or reseal, finishes.
func reseal(ctx context.Context, c console) error {
	lost := false
	if i := slices.IndexFunc(c.args, func(a string) bool { return a == "--lost" || a == "-lost" }); i >= 0 {
		lost, c.args = true, slices.Delete(slices.Clone(c.args), i, i+1)
	}
	cfg, err := settings(c)
	if err != nil {
		return err
	}
	pool, err := openPool(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	k := &keyring{path: cfg.KeyFile, store: store.New(pool, "reseal"), log: cfg.Logger(c.err)}
	row, _, err := k.store.SealKey(ctx)
	if err != nil {
		return &Error{Exit: ExitDatabase, Err: err}
	}
	if err := k.take(row); err != nil && !lost {
		return err
	}
	n, next, err := k.rotate(ctx, row)
	if err != nil {
		return err
	}
	done := "sealed anew"
	if k.key == nil {
		done = "erased"
	}
	fmt.Fprintf(c.out, "key %s took the place of %s; secrets %s: %d\nGive every other sidecar the file %s; the old one was kept beside it.\n", next.Fingerprint(), row.Fingerprint, done, n, cfg.KeyFile)
	return nil
}

// rotate replaces the database's key by a new one and every secret by itself sealed anew, or erases them where we do not
// hold the old key.
func (k *keyring) rotate(ctx context.Context, row store.SealKey) (int, *seal.Key, error) {
	next, err := seal.Load(seal.Next(k.path)) // of a rotation that went no further
	if errors.Is(err, fs.ErrNotExist) {
		if next, err = seal.Generate(); err == nil {
			err = next.Create(seal.Next(k.path))
		}
	}
	if err != nil {
		return 0, nil, &Error{Exit: ExitConfiguration, Err: err}
	}
	to, err := publicRow(next)
	if err != nil {
		return 0, nil, &Error{Exit: ExitConfiguration, Err: err}
	}
	var again func(store.Secret) ([]byte, error)
	if k.key != nil {
		again = func(s store.Secret) ([]byte, error) {
			n := seal.Name{Tenant: s.Tenant, Name: s.Name}
			value, err := k.key.Open(n, s.Sealed)
			if err != nil {
				return nil, fmt.Errorf("%w; set it anew or drop it first", err)
			}
			return next.Seal(n, value)
		}
	}
	n, err := k.store.Reseal(ctx, row.Fingerprint, to, again)
	if err != nil {
		return 0, nil, &Error{Exit: ExitDatabase, Err: err}
	}
	if err := seal.Replace(k.path); err != nil {
		return 0, nil, &Error{Exit: ExitConfiguration, Err: fmt.Errorf("the database has the new key, and it lies in %s: %w", seal.Next(k.path), err)}
	}
	return n, next, nil
}

// openPool opens a pool for one command.
func openPool(ctx context.Context, cfg config.Config) (*pgxpool.Pool, error) {
	s := &Sidecar{o: Options{Config: cfg}}
	if err := s.connect(ctx); err != nil {
		if s.pool != nil {
			s.pool.Close()
		}
		return nil, err
	}
	return s.pool, nil
}
