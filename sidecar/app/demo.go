package app

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"highwater/sidecar/config"
	"highwater/sidecar/demo"
	"highwater/sidecar/demo/gesture"
	"highwater/sidecar/seal"
)

// demoMaxRuns is how many runs the demo's sidecar carries at once.
const demoMaxRuns = 4

func runDemo(ctx context.Context, c console) error {
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	fs.SetOutput(c.err)
	once := fs.Bool("once", false, "run every demo manifest, print the ledger and exit 0 only if each came out as its header says")
	if err := fs.Parse(c.args); err != nil {
		return fmt.Errorf("%w: %w", config.ErrUsage, err)
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("%w: unexpected argument %q", config.ErrUsage, fs.Arg(0))
	}
	dir, err := os.MkdirTemp("", "highwater-demo-key-*")
	if err != nil {
		return &Error{Exit: ExitConfiguration, Err: fmt.Errorf("making a folder for the demo's key: %w", err)}
	}
	defer func() { _ = os.RemoveAll(dir) }()
	keyFile := demoKey(filepath.Join(dir, "key.asc"))
	err = demo.Run(ctx, demo.Options{Once: *once, Terminal: isTerminal(os.Stdin) && isTerminal(os.Stdout), Out: c.out, LookupEnv: c.lookup, StartSidecar: demoSidecar(c, keyFile)})
	if err != nil {
		return &Error{Exit: ExitDatabase, Err: err}
	}
	return nil
}

// demoKey makes the demo's key for secrets while the servers start, and gives a function that waits for it.
func demoKey(path string) func() (string, error) {
	done := make(chan error, 1)
	go func() {
		key, err := seal.Generate()
		if err == nil {
			err = key.Create(path)
		}
		done <- err
	}()
	return func() (string, error) { return path, <-done }
}

// demoSidecar starts the demo's sidecar in this process. It is silent unless a log level is asked for: what it would warn
// of (a superuser, runs that are meant to fail) is what a demo is.
func demoSidecar(c console, keyFile func() (string, error)) demo.StartSidecar {
	return func(ctx context.Context, url string, lookup func(string) (string, bool)) (func(), error) {
		key, err := keyFile()
		if err != nil {
			return nil, err
		}
		cfg := config.Config{DatabaseURL: url, KeyFile: key, MaxRuns: demoMaxRuns, MemoryMiB: config.MemoryMiBDefault}
		log := slog.New(slog.DiscardHandler)
		if level, ok := c.lookup("HIGHWATER_LOG_LEVEL"); ok && cfg.LogLevel.UnmarshalText([]byte(level)) == nil {
			log = cfg.Logger(c.err)
		}
		s, err := Start(ctx, Options{Config: cfg, Environ: lookup, Logger: log})
		if err != nil {
			return nil, err
		}
		return func() {
			if err := s.Stop(ctx); err != nil {
				log.Error("stopping the demo's sidecar", "error", err)
			}
		}, nil
	}
}

func feed(ctx context.Context, c console) error {
	return gesture.FeedCommand(ctx, c.args, c.out) //nolint:wrapcheck // it names the topic
}

func trim(ctx context.Context, c console) error {
	return gesture.TrimCommand(ctx, c.args, c.out) //nolint:wrapcheck // it names the topic
}

// isTerminal tells whether somebody can be at the other end.
func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0 && !isNull(st)
}

// isNull tells /dev/null, which is a character device too, from a terminal.
func isNull(st os.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(st, null)
}
