package land

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"highwater/sql/table"
)

// ErrFenced is returned where a position or the fence is no longer what the chunk was made for: another sidecar holds the
// run, or somebody moved the position. Nothing was written.
var ErrFenced = errors.New("the positions of this run are no longer this sidecar's to move")

// ErrShapeChanged is returned where the table differs from the shape that the chunk was built for. Nothing was written;
// [Landed].Shape is the table as it is now, for the chunk to be built anew.
var ErrShapeChanged = errors.New("the table changed its shape")

// ErrStopped is returned where [Run].Stop ended the waiting for a fault, or a chunk between two of its parts: the run is not
// at fault. What was not landed is still there to be read.
var ErrStopped = errors.New("the run is to stop; what was not landed of the chunk is read again by whoever goes on")

// tooMany says that a chunk has more rows that the database refuses than one transaction is to find.
type tooMany struct {
	hopeless bool // most of the rows tried were refused, so large parts of the chunk will fare no better
}

func (*tooMany) Error() string { return "too many refused rows for one transaction" }

// errUnknown says that COMMIT was sent and its answer is missing.
var errUnknown = errors.New("the answer to COMMIT is missing")

// errClosed stands for a connection that was found closed without any other word.
var errClosed = errors.New("the connection to the database is closed")

// Error is a chunk that could not be landed and ends the run; nothing of it was written.
type Error struct {
	Code      string // of the closed list of spec 1.3
	Message   string // one line: what happened, to which table, partition and offsets; PostgreSQL's own words
	Hint      string // what an operator can do
	Retryable bool   // the same run may succeed later without anybody changing anything
	SQLState  string // empty where PostgreSQL did not send the error
	lost      bool
	err       error
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.err }

// Lost says whether err means that the database could not be reached, for as long as Land waited for it: the run is not at
// fault, and may go on from the stored positions once the database is back.
func Lost(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.lost
}

// failed makes the error of a run that could not do what describes, by the verdict on err.
func (l *Lander) failed(run Run, what string, v Verdict, err error) error {
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	if errors.Is(err, ErrStopped) {
		return fmt.Errorf("%s: %w", what, err)
	}
	if v.Code == "fenced" {
		return fmt.Errorf("%s: %w", what, ErrFenced)
	}
	e := &Error{Code: v.Code, Hint: v.Hint, Retryable: v.Retryable, lost: v.Lost, err: err}
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		e.SQLState = pe.Code
		e.Message = fmt.Sprintf("%s: %s (SQLSTATE %s)", what, primary(pe), pe.Code)
	} else {
		e.Message = fmt.Sprintf("%s: %s", what, clean(plain(err)))
	}
	switch e.Code {
	case "table_missing":
		e.Message = fmt.Sprintf("table %s does not exist any more, though positions into it are stored", table.Quoted(run.Table))
		e.Hint = fmt.Sprintf("Bring the table back under its name, or read everything again with: SELECT connector.reset_cursor('%s');", run.Connector)
	case "not_authorized":
		e.Hint = grant(pe, l.pool.Config().ConnConfig.User)
	}
	return e
}

// grant writes the statement that mends a missing right. The sidecar's own objects ask for membership of their owner; what a
// trigger of somebody else's touches is named in the server's message.
func grant(pe *pgconn.PgError, role string) string {
	r := pgx.Identifier{role}.Sanitize()
	m := deniedObject.FindStringSubmatch(pe.Message)
	if m == nil || !strings.Contains(pe.Where, "function") {
		return fmt.Sprintf("GRANT %s TO %s;", table.Owner, r)
	}
	right := map[string]string{"schema": "USAGE", "function": "EXECUTE", "procedure": "EXECUTE", "sequence": "USAGE", "type": "USAGE"}[m[1]]
	if right == "" {
		right = "INSERT"
	}
	return fmt.Sprintf("A function that the table runs lacks a right: GRANT %s ON %s %s TO %s; (or the right that it uses)", right, strings.ToUpper(m[1]), m[2], r)
}

var deniedObject = regexp.MustCompile(`^permission denied for (\w+) (\S+)$`)

// plain leaves out what pgx says of the connection's user and database: a run's message is read by those who may not know them.
func plain(err error) string {
	var ce *pgconn.ConnectError
	if !errors.As(err, &ce) {
		return err.Error()
	}
	return "the database cannot be reached: " + errors.Unwrap(ce).Error()
}

// primary is PostgreSQL's message without DETAIL, which may print a whole row.
func primary(pe *pgconn.PgError) string { return clean(pe.Message) }

// messageMax bounds, in bytes, what is kept of a message that somebody's trigger or data made.
const messageMax = 500

// clean makes a message one storable, printable line of bounded length.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < ' ' || r == 0x7f || r == utf8.RuneError:
			return '\uFFFD'
		}
		return r
	}, s)
	if len(s) <= messageMax {
		return s
	}
	end := messageMax
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// where names the chunk in messages: its table and the offsets of each partition, up to a few.
func where(run Run, c *Chunk) string {
	const shown = 3
	var b strings.Builder
	fmt.Fprintf(&b, "landing %s", table.Quoted(run.Table))
	for i, a := range c.Advances {
		if i == shown {
			fmt.Fprintf(&b, " and %d partitions more", len(c.Advances)-shown)
			break
		}
		fmt.Fprintf(&b, " partition %d [%d,%d)", a.Partition, a.From, a.To)
	}
	return b.String()
}
