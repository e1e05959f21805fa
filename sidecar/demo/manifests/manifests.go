// Package manifests holds the demo's fifteen manifests as SQL files, and checks that each does what its header says.
//
// A file is for psql first: a header in words, the row that declares a connector, and the statements that one would run
// on it. Some of its lines are for [Runner] too:
//
//	-- Expect: run 2: status=Partial message~5000..5499     columns of the file's 2nd run in connector.runs: equal, contains
//	-- Expect-sql: SELECT … => 2400|2400                    the answer as psql -At prints it
//	-- Expect-error: 22023: ERROR spec.name, WARN spec.x    the one statement that is refused, and the findings it names
//	-- Expect-no-topic: acme.absent                         the broker still has no such topic
//	-- Gesture: environment NAME=value                      what the sidecar is to find in its environment from here on
//	\! highwater feed|trim …                                with & behind it: while the file goes on
//	\! sleep 2                                              seconds
//
// An expectation is judged when the file is through, with the runs' ids in :'run1' and :'run2', the messages fed in :fed
// and the time of the last one in :'fed_until'. The other lines that begin with a backslash are psql's alone.
// Every file names the broker of the demo, 127.0.0.1:29092; a Runner puts another one's address in its place.
//
// Types to know: [Manifest] and [Runner].
package manifests

import (
	"embed"
	"slices"
	"sync"

	"highwater/sidecar/demo/gesture"
)

//go:embed *.sql
var files embed.FS

// Manifest is one file.
type Manifest struct {
	File   string // such as 10-quickstart.sql
	Name   string // the connector that it declares
	SQL    string // the whole text
	Steps  []Step
	Expect []Expectation
	Err    error // why the file cannot be read, nil in a sound program
}

// Step is one thing that a file does. Exactly one of its fields is set.
type Step struct {
	Statement   string
	Feed        *gesture.FeedOptions // Brokers is still to be filled in
	Trim        *gesture.TrimOptions // Brokers is still to be filled in
	Sleep       float64              // seconds
	Environment *Variable
	Background  bool // with Feed: the next step does not wait for its end
}

// Variable is one of the sidecar's environment.
type Variable struct{ Name, Value string }

// Kinds of expectations, as the files spell them.
const (
	expectRun     = "Expect"
	expectSQL     = "Expect-sql"
	expectError   = "Expect-error"
	expectNoTopic = "Expect-no-topic"
)

// Expectation is one line of a header.
type Expectation struct {
	Kind  string
	Line  string   // as written, behind the kind
	Run   int      // for Expect: which of the file's runs, from 1
	Tests []Test   // for Expect
	SQL   string   // for Expect-sql: the statement
	Want  string   // for Expect-sql: the answer; for Expect-error: the SQLSTATE; for Expect-no-topic: the topic
	Named []string // for Expect-error: severity and path of each finding
}

// Test is one word of an Expect line: a column of connector.runs that equals or contains a text.
type Test struct {
	Column   string
	Contains bool
	Text     string
}

var all = sync.OnceValue(func() []Manifest { return load(files) })

// All lists the manifests in the order of their files' names.
func All() []Manifest { return slices.Clone(all()) }

// load parses every file. One that cannot be read bears its error, and fails every check of it.
func load(from embed.FS) []Manifest {
	entries, err := from.ReadDir(".")
	if err != nil {
		return []Manifest{{File: ".", Err: err}}
	}
	out := make([]Manifest, len(entries))
	for i, entry := range entries {
		text, err := from.ReadFile(entry.Name())
		if err == nil {
			out[i], err = Parse(entry.Name(), string(text))
		}
		out[i].File, out[i].Err = entry.Name(), err
	}
	return out
}
