package land

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"highwater/sql/table"
)

// What becomes of a fault.
const (
	StopRun    Action = iota // the run ends; an operator has to look
	RetryChunk               // the chunk is tried again after Wait, then as StopRun
	RefuseRow                // one row's fault, if it arose while rows were copied; that row becomes a dead letter
)

// Action is one of the three fates an error can have.
type Action uint8

// Verdict says what an error means for the chunk that met it.
type Verdict struct {
	Do        Action
	Wait      Wait   // how to try again; only for RetryChunk
	Code      string // of the closed list of spec 1.3, for when the run ends of it
	Hint      string // what an operator can do
	Retryable bool   // the same run may succeed later without anybody changing anything
	Lost      bool   // the connection is gone, or must go
}

// Wait is how long one kind of fault is waited for: a jittered pause that doubles from Min to Max, Total in all.
type Wait struct{ Min, Max, Total time.Duration }

// The bounds of trying again. Their sum is felt by an operator as the time until a run gives up.
var (
	// waitLock is for locks that others hold and for deadlocks; a lock held for longer is an operator's affair.
	waitLock = Wait{Min: 20 * time.Millisecond, Max: time.Second, Total: 60 * time.Second}
	// waitDDL is for the lock that a new column needs: readers that sit on the table may be long reports.
	waitDDL = Wait{Min: 100 * time.Millisecond, Max: 3 * time.Second, Total: 60 * time.Second}
	// waitServer is for a server that is gone, starting, read-only or full of connections.
	waitServer = Wait{Min: 20 * time.Millisecond, Max: time.Second, Total: 30 * time.Second}
	// waitFault is for what seldom mends itself, such as a full disk.
	waitFault = Wait{Min: 200 * time.Millisecond, Max: time.Second, Total: 3 * time.Second}
)

const goesOn = "The next run goes on from the stored position."

// states are the verdicts of single SQLSTATEs; classes those of all others of a class. What stands in neither is a code that
// somebody's trigger made up, and the row's fault.
var states = map[string]Verdict{
	"42804": {Do: RefuseRow, Code: "database_error"},
	"54000": {Do: RefuseRow, Code: "database_error"},
	"54001": {Do: RefuseRow, Code: "database_error"},
	// Not a row's fault although of class 22: the lines we wrote were no COPY text, or a sequence is used up.
	"22P04": {Code: "internal", Hint: "This is a defect of the sidecar: its log has the details."},
	"2200H": {Code: "database_error", Hint: "The sequence behind the column id is used up; ALTER SEQUENCE … AS bigint, or NO MAXVALUE, mends it."},
	"KC010": {Code: "fenced"},
	"KC011": {Code: "internal", Hint: "This is a defect of the sidecar: its log has the details."},
	"40001": {Do: RetryChunk, Wait: waitLock, Code: "database_error", Hint: goesOn, Retryable: true},
	"40P01": {Do: RetryChunk, Wait: waitLock, Code: "database_error", Hint: goesOn, Retryable: true},
	"55P03": {
		Do: RetryChunk, Wait: waitLock, Code: "database_error", Retryable: true,
		Hint: "Another session holds a lock: SELECT pid, query FROM pg_stat_activity WHERE pid IN (SELECT pid FROM pg_locks WHERE relation = 'connector._cursor'::regclass); " + goesOn,
	},
	"57014": {Do: RetryChunk, Wait: waitFault, Code: "database_error", Hint: "Somebody cancelled the statement. " + goesOn, Retryable: true},
	"25006": {
		Do: RetryChunk, Wait: waitServer, Code: "database_error", Retryable: true, Lost: true,
		Hint: "The server takes no writes: a standby, or default_transaction_read_only. " + goesOn,
	},
	"42501": {Code: "not_authorized", Hint: "GRANT " + table.Owner + " TO the sidecar's role."},
	"42P01": {Code: "database_error", Hint: "A relation that a statement or a trigger needs does not exist. " + goesOn},
	"53100": {Do: RetryChunk, Wait: waitFault, Code: "database_error", Hint: "Free disk space on the database server. " + goesOn, Retryable: true},
	"53300": {Do: RetryChunk, Wait: waitServer, Code: "database_error", Hint: "Raise max_connections, or the role's CONNECTION LIMIT. " + goesOn, Retryable: true, Lost: true},
}

var (
	environment = Verdict{Do: RetryChunk, Wait: waitFault, Code: "database_error", Hint: goesOn, Retryable: true}
	gone        = Verdict{Do: RetryChunk, Wait: waitServer, Code: "database_error", Hint: goesOn, Retryable: true, Lost: true}
	operators   = Verdict{Code: "database_error", Hint: goesOn}
	rows        = Verdict{Do: RefuseRow, Code: "database_error"}
)

var classes = map[string]Verdict{
	// Data, integrity, views with check option, PL/pgSQL: the row's fault. Then what only a trigger, a default or a function in
	// a check can raise while a row is copied.
	"22": rows, "23": rows, "44": rows, "P0": rows,
	"09": rows, "20": rows, "21": rows, "27": rows, "2F": rows, "38": rows, "39": rows,
	// The environment's: connections, transactions, resources, intervention, the system, corruption.
	"08": gone, "57": gone, "25": environment, "40": environment, "53": environment, "55": environment, "58": environment,
	"28": environment, "3D": environment, "F0": environment, "HV": environment, "XX": environment, "54": environment,
	// What stays as it is until somebody changes it.
	"0A": operators, "42": operators, "26": operators, "2B": operators, "2D": operators, "34": operators, "3B": operators, "3F": operators,
	"00": operators, "01": operators, "02": operators, "03": operators, "0B": operators, "0F": operators, "0L": operators, "0P": operators,
	"0Z": operators, "10": operators, "24": operators, "72": operators,
}

// Fate says what an error means. It is the only place that decides; everything else asks.
//
// An error that PostgreSQL did not send is a lost connection where it looks like one, else a defect of ours.
func Fate(err error) Verdict {
	var pe *pgconn.PgError
	switch {
	case errors.As(err, &pe):
		return ofState(pe)
	case errors.Is(err, table.ErrMissing):
		return Verdict{Code: "table_missing"}
	case errors.Is(err, table.ErrNotOurs), errors.Is(err, table.ErrNotOrdinary):
		return Verdict{Code: "table_not_ours", Hint: "Move that relation out of the way: ALTER TABLE … RENAME TO …, or give the connector another spec.name."}
	case errors.Is(err, ErrFenced):
		return Verdict{Code: "fenced"}
	case errors.Is(err, context.Canceled):
		return Verdict{Code: "interrupted", Hint: goesOn, Retryable: true}
	case disconnected(err):
		return gone
	}
	return Verdict{Code: "internal", Hint: "This is a defect of the sidecar: its log has the details."}
}

func ofState(pe *pgconn.PgError) Verdict {
	if v, ok := states[pe.Code]; ok {
		return v
	}
	if pe.Severity == "FATAL" || pe.Severity == "PANIC" {
		return gone // whatever the code: the session is over
	}
	if len(pe.Code) != 5 {
		return operators
	}
	if v, ok := classes[pe.Code[:2]]; ok {
		return v
	}
	return rows
}

// disconnected knows an error that means the connection, without the server having said a word.
func disconnected(err error) bool {
	var (
		connecting *pgconn.ConnectError
		network    net.Error
	)
	return errors.As(err, &connecting) || errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, errClosed) || pgconn.SafeToRetry(err) || pgconn.Timeout(err)
}
