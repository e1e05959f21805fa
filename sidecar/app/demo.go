package app

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"highwater/sidecar/config"
	"highwater/sidecar/demo"
	"highwater/sidecar/demo/gesture"
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
	err := demo.Run(ctx, demo.Options{Once: *once, Terminal: isTerminal(os.Stdin) && isTerminal(os.Stdout), Out: c.out, LookupEnv: c.lookup, StartSidecar: demoSidecar(c)})
	if err != nil {
		return &Error{Exit: ExitDatabase, Err: err}
	}
	return nil
}

// demoSidecar starts the demo's sidecar in this process. It is silent unless a log level is asked for: what it would warn
// of (a superuser, runs that are meant to fail) is what a demo is.
func demoSidecar(c console) demo.StartSidecar {
	return func(ctx context.Context, url string, lookup func(string) (string, bool)) (func(), error) {
		cfg := config.Config{DatabaseURL: url, MaxRuns: demoMaxRuns, MemoryMiB: config.MemoryMiBDefault}
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
