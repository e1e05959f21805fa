package migrations

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

// bundle is everything that one version of the program applies.
type bundle struct {
	bootstrap  string
	steps      []step
	repeatable []file
	digest     string // of all repeatable files and their order
}

// step is one numbered file.
type step struct {
	number int
	name   string
	sql    string
	digest string
}

// file is one repeatable file.
type file struct{ name, sql string }

var stepName = regexp.MustCompile(`^(\d{4})_[a-z0-9_]+\.sql$`)

// load reads the files and refuses a gap in the numbers.
func load(numbered, repeatable fs.FS) (*bundle, error) {
	bootstrap, err := fs.ReadFile(numbered, "bootstrap.sql")
	if err != nil {
		return nil, fmt.Errorf("reading bootstrap.sql: %w", err)
	}
	b := &bundle{bootstrap: string(bootstrap)}
	if b.steps, err = loadSteps(numbered); err != nil {
		return nil, err
	}
	if b.repeatable, err = loadRepeatable(repeatable); err != nil {
		return nil, err
	}
	var all strings.Builder
	for _, f := range b.repeatable {
		fmt.Fprintf(&all, "-- %s\n%s\n", f.name, f.sql)
	}
	b.digest = digest(all.String())
	return b, nil
}

// loadSteps gives the numbered files in order.
func loadSteps(from fs.FS) ([]step, error) {
	entries, err := fs.ReadDir(from, ".")
	if err != nil {
		return nil, fmt.Errorf("listing migrations: %w", err)
	}
	var out []step
	for _, e := range entries {
		m := stepName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		text, err := fs.ReadFile(from, e.Name())
		if err != nil {
			return nil, fmt.Errorf("reading migration %s: %w", e.Name(), err)
		}
		n, _ := strconv.Atoi(m[1])
		if n != len(out)+1 {
			return nil, fmt.Errorf("migration %s does not follow number %04d", e.Name(), len(out))
		}
		out = append(out, step{number: n, name: e.Name(), sql: string(text), digest: digest(string(text))})
	}
	return out, nil
}

// loadRepeatable gives the files that ORDER lists, in that order.
func loadRepeatable(from fs.FS) ([]file, error) {
	order, err := fs.ReadFile(from, "ORDER")
	if err != nil {
		return nil, fmt.Errorf("reading sql/api/ORDER: %w", err)
	}
	var out []file
	for _, name := range strings.Fields(string(order)) {
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return nil, fmt.Errorf("reading sql/api/%s: %w", name, err)
		}
		out = append(out, file{name: name, sql: string(text)})
	}
	return out, nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// record is the statement that remembers a step as applied.
func (s step) record() string {
	return fmt.Sprintf("INSERT INTO connector._migration (number, name, sha256) VALUES (%d, '%s', '%s');", s.number, s.name, s.digest)
}

// record is the statement that remembers the repeatable files as applied.
func (b *bundle) record() string {
	return fmt.Sprintf("INSERT INTO connector._repeatable (sha256) VALUES ('%s') ON CONFLICT (one) DO UPDATE SET sha256 = EXCLUDED.sha256, applied_at = now();", b.digest)
}
