package config

import (
	"io"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	env := func(m map[string]string) func(string) (string, bool) {
		return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
	}
	for _, c := range []struct {
		name string
		args []string
		env  map[string]string
		want func(Config) bool
		err  string
	}{
		{"defaults", nil, nil, func(c Config) bool { return c.HTTPAddr == HTTPAddrDefault && c.MaxRuns == 8 && c.MemoryMiB == 256 }, ""},
		{"a flag beats the environment", []string{"-max-runs", "3"}, map[string]string{"HIGHWATER_MAX_RUNS": "5"}, func(c Config) bool { return c.MaxRuns == 3 }, ""},
		{"the environment beats the default", nil, map[string]string{"HIGHWATER_MAX_RUNS": "5"}, func(c Config) bool { return c.MaxRuns == 5 }, ""},
		{"DATABASE_URL stands in", nil, map[string]string{"DATABASE_URL": "postgres://x"}, func(c Config) bool { return c.DatabaseURL == "postgres://x" }, ""},
		{"the own variable beats DATABASE_URL", nil, map[string]string{"DATABASE_URL": "a", "HIGHWATER_DATABASE_URL": "b"}, func(c Config) bool { return c.DatabaseURL == "b" }, ""},
		{"an empty address turns health off", []string{"-http-addr", ""}, nil, func(c Config) bool { return c.HTTPAddr == "" }, ""},
		{"the key lies in the user's configuration", nil, map[string]string{"HOME": "/home/x"}, func(c Config) bool { return c.KeyFile == "/home/x/.config/highwater/key.asc" }, ""},
		{"wherever that is", nil, map[string]string{"HOME": "/home/x", "XDG_CONFIG_HOME": "/etc/x"}, func(c Config) bool { return c.KeyFile == "/etc/x/highwater/key.asc" }, ""},
		{"or where one says", []string{"-key-file", "/k"}, map[string]string{"HOME": "/home/x"}, func(c Config) bool { return c.KeyFile == "/k" }, ""},
		{"or in the system's own place, for a user without a home", nil, nil, func(c Config) bool { return c.KeyFile == "/var/lib/highwater/key.asc" && !c.KeyFileNamed }, ""},
		{"too many runs", []string{"-max-runs", "65"}, nil, nil, "1..64"},
		{"runs that are no number", nil, map[string]string{"HIGHWATER_MAX_RUNS": "many"}, nil, "max-runs"},
		{"too little memory", []string{"-memory-mib", "12"}, nil, nil, "128.."},
		{"an unknown level", []string{"-log-level", "loud"}, nil, nil, "debug, info"},
		{"an unknown format", []string{"-log-format", "xml"}, nil, nil, "text, json"},
		{"an address without a port", []string{"-http-addr", "localhost"}, nil, nil, "host:port"},
		{"an unknown flag", []string{"-nosuch"}, nil, nil, "nosuch"},
		{"a stray word", []string{"now"}, nil, nil, "unexpected argument"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse(c.args, env(c.env), io.Discard)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want one with %q", err, c.err)
				}
				return
			}
			if err != nil || !c.want(got) {
				t.Fatalf("got %+v, %v", got, err)
			}
		})
	}
}
