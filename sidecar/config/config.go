// Package config reads the sidecar's few settings: flags first, then the environment. Everything else an operator can
// change is SQL.
//
// It opens nothing and connects to nothing. The table of settings in docs/settings.md is generated from [Settings], so
// the two cannot disagree.
package config

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Limits of the settings, each in the unit its name says.
const (
	MaxRunsDefault   = 8
	MaxRunsLimit     = 64
	MemoryMiBDefault = 256
	MemoryMiBMin     = 128
	MemoryMiBLimit   = 65536
	HTTPAddrDefault  = "127.0.0.1:8321"
)

// ErrUsage marks a command line that cannot be read; every other error of [Parse] is about a setting's value.
var ErrUsage = errors.New("the command line cannot be read")

// Config is what a sidecar was started with.
type Config struct {
	DatabaseURL  string // connection string; empty: the libpq variables decide
	HTTPAddr     string // host:port of health and metrics; empty: none
	KeyFile      string // private key for secrets; empty: secrets of the registry cannot be opened
	KeyFileNamed bool   // somebody chose KeyFile: a place that cannot be written to is then a fault, not a warning
	MaxRuns      int    // runs at once
	MemoryMiB    int    // what the process may use, in MiB
	AllowedHosts []string
	LogLevel     slog.Level
	LogFormat    string // text or json
	NoMigrate    bool
}

// Setting describes one setting for the documentation and for -help.
type Setting struct {
	Flag, Env, Unit, Default, Limit, Meaning string
}

// Settings lists every setting of `highwater serve`, in the order of the documentation.
func Settings() []Setting {
	return []Setting{
		{"database-url", "HIGHWATER_DATABASE_URL", "connection string", "DATABASE_URL, else the libpq variables", "", "the database to serve"},
		{"http-addr", "HIGHWATER_HTTP_ADDR", "host:port", HTTPAddrDefault, "", "where /healthz, /readyz and /metrics answer; empty turns them off"},
		{"key-file", "HIGHWATER_KEY_FILE", "path", "`highwater/key.asc` in `$XDG_CONFIG_HOME`, else in `~/.config`, else in `/var/lib`", "mode 0600 or 0640", "the private key that opens secrets; the first sidecar of a database makes it"},
		{"max-runs", "HIGHWATER_MAX_RUNS", "runs", strconv.Itoa(MaxRunsDefault), fmt.Sprintf("1..%d", MaxRunsLimit), "runs at once in this sidecar"},
		{"memory-mib", "HIGHWATER_MEMORY_MIB", "MiB", strconv.Itoa(MemoryMiBDefault), fmt.Sprintf("%d..%d", MemoryMiBMin, MemoryMiBLimit), "what the process may use; bounds what is read ahead"},
		{"log-level", "HIGHWATER_LOG_LEVEL", "level", "info", "debug, info, warn, error", "least level that is logged"},
		{"log-format", "HIGHWATER_LOG_FORMAT", "format", "text", "text, json", "how log lines are written"},
	}
}

// Parse reads args (without the program and the subcommand) and the environment. Usage text goes to out.
//
// An unknown flag gives flag's own error; a value out of its limit an error that names the setting and the limit.
func Parse(args []string, lookup func(string) (string, bool), out io.Writer) (Config, error) {
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	fs.SetOutput(out)
	values := map[string]*string{}
	for _, s := range Settings() {
		values[s.Flag] = fs.String(s.Flag, "", fmt.Sprintf("%s (%s; %s)", s.Meaning, s.Env, s.Unit))
	}
	noMigrate := fs.Bool("no-migrate", false, "start without applying migrations")
	if err := fs.Parse(args); err != nil {
		return Config{}, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	if fs.NArg() > 0 {
		return Config{}, fmt.Errorf("%w: unexpected argument %q", ErrUsage, fs.Arg(0))
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	get := func(name string) (string, bool) {
		if given[name] {
			return *values[name], true
		}
		for _, s := range Settings() {
			if s.Flag == name {
				return lookup(s.Env)
			}
		}
		return "", false
	}
	return fill(get, lookup, *noMigrate)
}

func fill(get, lookup func(string) (string, bool), noMigrate bool) (Config, error) {
	c := Config{HTTPAddr: HTTPAddrDefault, MaxRuns: MaxRunsDefault, MemoryMiB: MemoryMiBDefault, LogFormat: "text", NoMigrate: noMigrate}
	if v, ok := get("database-url"); ok && v != "" {
		c.DatabaseURL = v
	} else if v, ok := lookup("DATABASE_URL"); ok {
		c.DatabaseURL = v
	}
	if v, ok := get("http-addr"); ok {
		c.HTTPAddr = v
	}
	if c.HTTPAddr != "" {
		if err := checkAddr(c.HTTPAddr); err != nil {
			return Config{}, err
		}
	}
	c.KeyFile = defaultKeyFile(lookup)
	if v, ok := get("key-file"); ok && v != "" {
		c.KeyFile, c.KeyFileNamed = v, true
	}
	if err := whole(get, "max-runs", 1, MaxRunsLimit, &c.MaxRuns); err != nil {
		return Config{}, err
	}
	if err := whole(get, "memory-mib", MemoryMiBMin, MemoryMiBLimit, &c.MemoryMiB); err != nil {
		return Config{}, err
	}
	if v, ok := get("log-level"); ok && v != "" {
		if err := c.LogLevel.UnmarshalText([]byte(v)); err != nil {
			return Config{}, fmt.Errorf("log-level %q is not one of debug, info, warn, error", v)
		}
	}
	if v, ok := get("log-format"); ok && v != "" {
		if !slices.Contains([]string{"text", "json"}, v) {
			return Config{}, fmt.Errorf("log-format %q is not one of text, json", v)
		}
		c.LogFormat = v
	}
	return c, nil
}

// homelessKeyFile is where the key of a user without a home lies.
const homelessKeyFile = "/var/lib/highwater/key.asc"

// defaultKeyFile is where the key lies when nobody says.
func defaultKeyFile(lookup func(string) (string, bool)) string {
	if dir, ok := lookup("XDG_CONFIG_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "highwater", "key.asc")
	}
	if home, ok := lookup("HOME"); ok && filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "highwater", "key.asc")
	}
	return homelessKeyFile
}

func checkAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("http-addr %q is not host:port", addr)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("http-addr %q has no port in 0..65535", addr)
	}
	if host == "" || host == "localhost" {
		return nil
	}
	if _, err := netip.ParseAddr(host); err != nil && strings.ContainsAny(host, " /") {
		return fmt.Errorf("http-addr %q names no host", addr)
	}
	return nil
}

func whole(get func(string) (string, bool), name string, low, high int, into *int) error {
	v, ok := get(name)
	if !ok || v == "" {
		return nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < low || n > high {
		return fmt.Errorf("%s must be a whole number in %d..%d, not %q", name, low, high, v)
	}
	*into = n
	return nil
}

// Logger makes the process's logger as the settings say, writing to w.
func (c Config) Logger(w *os.File) *slog.Logger {
	o := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
