package manifests

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"highwater/sidecar/demo/gesture"
)

// sleepMax bounds a pause in a file, in seconds.
const sleepMax = 60

var (
	declared = regexp.MustCompile(`INSERT INTO connector\.manifest \(name, scopes, spec\) VALUES \('([^']+)'`)
	runLine  = regexp.MustCompile(`^run ([1-9]): (.+)$`)
	sqlLine  = regexp.MustCompile(`^(.+) => (.*)$`)
	wordTest = regexp.MustCompile(`^([a-z_]+)([=~])(.+)$`)
	errLine  = regexp.MustCompile(`^([0-9A-Z]{5}): (.+)$`)
	variable = regexp.MustCompile(`^environment ([A-Z0-9_]+)=(.+)$`)
)

// Parse reads one file. An error names the line that it is about.
//
// The files are ours and keep to a form that needs no parser of SQL: a comment has its line to itself, and a statement
// ends with a semicolon at the end of a line.
func Parse(file, text string) (Manifest, error) {
	m := Manifest{File: file, SQL: text}
	found := declared.FindStringSubmatch(text)
	if found == nil {
		return m, errors.New("declares no connector")
	}
	m.Name = found[1]
	var statement []string
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, " ")
		var err error
		switch {
		case strings.HasPrefix(line, "-- ") || line == "--":
			err = m.comment(strings.TrimPrefix(line, "-- "))
		case strings.HasPrefix(line, `\! `):
			err = m.shell(strings.TrimPrefix(line, `\! `))
		case strings.HasPrefix(line, `\`) || line == "" && statement == nil:
		default:
			statement = append(statement, line)
			if strings.HasSuffix(line, ";") {
				m.Steps = append(m.Steps, Step{Statement: strings.TrimSuffix(strings.Join(statement, "\n"), ";")})
				statement = nil
			}
		}
		if err != nil {
			return m, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if statement != nil {
		return m, fmt.Errorf("the last statement has no semicolon: %s", statement[0])
	}
	if len(m.Expect) == 0 {
		return m, errors.New("expects nothing")
	}
	return m, nil
}

// comment takes the lines that mean something; every other comment is for people.
func (m *Manifest) comment(line string) error {
	word, rest, _ := strings.Cut(line, ": ")
	switch word {
	case "Gesture":
		found := variable.FindStringSubmatch(rest)
		if found == nil {
			return fmt.Errorf("no such gesture: %s", rest)
		}
		m.Steps = append(m.Steps, Step{Environment: &Variable{found[1], found[2]}})
		return nil
	case expectRun, expectSQL, expectError, expectNoTopic:
		e, err := expectation(word, rest)
		if err != nil {
			return err
		}
		m.Expect = append(m.Expect, e)
		return nil
	}
	if strings.HasPrefix(line, "Expect") || strings.HasPrefix(line, "Gesture") {
		return fmt.Errorf("a line of no known kind: %s", line)
	}
	return nil
}

func expectation(kind, line string) (Expectation, error) {
	e := Expectation{Kind: kind, Line: line}
	switch kind {
	case expectRun:
		found := runLine.FindStringSubmatch(line)
		if found == nil {
			return e, fmt.Errorf("no run is named: %s", line)
		}
		e.Run, _ = strconv.Atoi(found[1]) // one digit, by the pattern
		for _, word := range strings.Fields(found[2]) {
			parts := wordTest.FindStringSubmatch(word)
			if parts == nil {
				return e, fmt.Errorf("%q is neither column=text nor column~text", word)
			}
			e.Tests = append(e.Tests, Test{Column: parts[1], Contains: parts[2] == "~", Text: parts[3]})
		}
	case expectSQL:
		found := sqlLine.FindStringSubmatch(line)
		if found == nil {
			return e, fmt.Errorf("no answer behind =>: %s", line)
		}
		e.SQL, e.Want = found[1], found[2]
	case expectError:
		found := errLine.FindStringSubmatch(line)
		if found == nil {
			return e, fmt.Errorf("no SQLSTATE: %s", line)
		}
		e.Want, e.Named = found[1], strings.Split(found[2], ", ")
	case expectNoTopic:
		e.Want = line
	}
	return e, nil
}

// shell takes the few commands that a Runner can do without a shell.
func (m *Manifest) shell(line string) error {
	words := strings.Fields(line)
	background := words[len(words)-1] == "&"
	if background {
		words = words[:len(words)-1]
	}
	step := Step{Background: background}
	var err error
	switch command := strings.Join(words[:min(2, len(words))], " "); {
	case command == "highwater feed":
		var o gesture.FeedOptions
		o, err = gesture.ParseFeed(words[2:], io.Discard)
		step.Feed = &o
	case command == "highwater trim" && !background:
		var o gesture.TrimOptions
		o, err = gesture.ParseTrim(words[2:], io.Discard)
		step.Trim = &o
	case words[0] == "sleep" && len(words) == 2 && !background:
		step.Sleep, err = strconv.ParseFloat(words[1], 64)
		if err == nil && !(step.Sleep > 0 && step.Sleep <= sleepMax) {
			err = fmt.Errorf("sleeps above 0 and up to %d seconds, not %s", sleepMax, words[1])
		}
	default:
		err = fmt.Errorf("no such command: %s", line)
	}
	if err != nil {
		return err
	}
	m.Steps = append(m.Steps, step)
	return nil
}
