package land

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"highwater/sql/stmt"
	"highwater/sql/table"
)

const (
	// payloadMax bounds, in characters, what a dead letter's payload shows of the value.
	payloadMax = 8192
	// rawMax bounds, in bytes, the value (and the key) that a dead letter keeps whole.
	rawMax = 1 << 20
)

// letterColumns are the dead letters of one statement, a slice a column.
type letterColumns struct {
	partition                []int32
	offset                   []int64
	reason, message, payload []string
	sqlstate, key, headers   []*string
	raw                      [][]byte
	bytes                    int
}

// queueLetters stores the chunk's own dead letters and the rows that the database refused, in statements of bounded size.
func (a *attempt) queueLetters(b *pgx.Batch) error {
	var l letterColumns
	for i := range a.c.Letters {
		if err := a.queueLetter(b, &l, &a.c.Letters[i]); err != nil {
			return err
		}
	}
	for _, r := range a.refused {
		if a.scratch.state[r.row] != notTaken {
			continue // its second chance came
		}
		row := &a.c.Rows[r.row]
		letter := Letter{
			Partition: row.Partition, Offset: row.Offset, Reason: "Refused", Message: refusedBecause(r.err, a.run.Table), SQLState: r.err.Code, Raw: row.Raw,
		}
		if err := a.queueLetter(b, &l, &letter); err != nil {
			return err
		}
	}
	a.flushLetters(b, &l)
	return nil
}

func (a *attempt) queueLetter(b *pgx.Batch, l *letterColumns, letter *Letter) error {
	if err := l.add(a.run.Topic, letter); err != nil {
		return err
	}
	if l.bytes > a.l.o.letterBytesHold {
		a.flushLetters(b, l)
	}
	return nil
}

func (a *attempt) flushLetters(b *pgx.Batch, l *letterColumns) {
	if len(l.offset) == 0 {
		return
	}
	var topicID *uuid.UUID
	if a.run.TopicID != uuid.Nil {
		topicID = &a.run.TopicID
	}
	b.Queue(stmt.LandLetters, a.run.TenantID, a.run.ConnectorID, a.run.Connector, a.run.ID, a.run.Topic, topicID,
		l.partition, l.offset, l.reason, l.message, l.sqlstate, l.payload, l.key, l.headers, l.raw)
	*l = letterColumns{}
}

func (l *letterColumns) add(topic string, letter *Letter) error {
	payload, err := payloadOf(topic, letter)
	if err != nil {
		return err
	}
	headers, err := headersOf(letter.Raw.Headers)
	if err != nil {
		return err
	}
	raw := letter.Raw.Value
	if letter.Tombstone || letter.Size > len(raw) || len(raw) > rawMax {
		raw = nil
	} else if raw == nil {
		raw = []byte{} // a value of no bytes is a value
	}
	l.partition = append(l.partition, letter.Partition)
	l.offset = append(l.offset, letter.Offset)
	l.reason = append(l.reason, letter.Reason)
	l.message = append(l.message, fmt.Sprintf("%s:%d:%d:%d — %s", topic, letter.Partition, letter.Offset, letter.Offset, clean(letter.Message)))
	l.payload = append(l.payload, payload)
	l.sqlstate = append(l.sqlstate, nonEmpty(letter.SQLState))
	l.key = append(l.key, keyOf(letter.Raw.Key))
	l.headers = append(l.headers, headers)
	l.raw = append(l.raw, raw)
	l.bytes += len(payload) + len(raw) + len(letter.Raw.Key) + messageMax
	return nil
}

// refusedBecause says in the server's words why a row was refused, without DETAIL, which may print the whole row.
func refusedBecause(pe *pgconn.PgError, name string) string {
	at := ""
	switch {
	case pe.ConstraintName != "":
		at = ", constraint " + pgx.Identifier{pe.ConstraintName}.Sanitize()
	case pe.ColumnName != "" && pe.TableName == name && pe.SchemaName == table.Schema:
		at = ", column " + pgx.Identifier{pe.ColumnName}.Sanitize()
	default:
		if m := copyColumn.FindStringSubmatch(pe.Where); m != nil {
			at = ", column " + pgx.Identifier{m[1]}.Sanitize()
		}
	}
	return fmt.Sprintf("the database refused this row: %s (SQLSTATE %s%s)", primary(pe), pe.Code, at)
}

var copyColumn = regexp.MustCompile(`(?m)^COPY .+, line \d+, column ([^:\n]+)`)

// payloadOf is what connector.dlq shows: the value's beginning as text, or as base64 where it is none.
func payloadOf(topic string, l *Letter) (string, error) {
	p := struct {
		Raw      []string `json:"raw"`
		File     string   `json:"file"`
		Line     int64    `json:"line"`
		Encoding string   `json:"encoding,omitempty"`
	}{Raw: []string{}, File: fmt.Sprintf("%s:%d:%d", topic, l.Partition, l.Offset), Line: l.Offset}
	if !l.Tombstone {
		text, encoding := shown(l.Raw.Value)
		p.Raw, p.Encoding = append(p.Raw, text), encoding
	}
	b, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("writing the payload of a dead letter: %w", err)
	}
	return string(b), nil
}

// shown gives up to payloadMax characters of a value and, where it is not text, the name of the encoding.
func shown(value []byte) (text, encoding string) {
	if !storable(value) {
		return base64.StdEncoding.EncodeToString(value[:min(len(value), payloadMax/4*3)]), "base64"
	}
	if len(value) <= payloadMax {
		return string(value), ""
	}
	n := 0
	for i := range string(value) {
		if n == payloadMax {
			return string(value[:i]), ""
		}
		n++
	}
	return string(value), ""
}

// storable says whether PostgreSQL takes the bytes as text.
func storable(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

// keyOf gives a key as text: as it is, or as base64 behind a mark where it is no text. An absent key is null.
func keyOf(key []byte) *string {
	if key == nil {
		return nil
	}
	if len(key) > rawMax {
		key = bytes.ToValidUTF8(key[:rawMax], nil)
	}
	text := "base64:" + base64.StdEncoding.EncodeToString(key)
	if storable(key) {
		text = string(key)
	}
	return &text
}

// headersOf gives headers as an ordered array of [name, value]; a value that is no text is {"base64": …}. None are null.
func headersOf(headers []Header) (*string, error) {
	if len(headers) == 0 {
		return nil, nil //nolint:nilnil // no headers are null in the database
	}
	pairs := make([][2]any, len(headers))
	for i, h := range headers {
		pairs[i][0] = clean(h.Key)
		switch {
		case h.Value == nil:
		case storable(h.Value):
			pairs[i][1] = string(h.Value)
		default:
			pairs[i][1] = map[string][]byte{"base64": h.Value}
		}
	}
	b, err := json.Marshal(pairs)
	if err != nil {
		return nil, fmt.Errorf("writing the headers of a dead letter: %w", err)
	}
	text := string(b)
	return &text, nil
}

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// advances is the chunk's account for connector._advance.
func (a *attempt) advances() string {
	b := append(make([]byte, 0, 256*len(a.c.Advances)), '[')
	for i, adv := range a.c.Advances {
		if i > 0 {
			b = append(b, ',')
		}
		p := a.landed.Partitions[i]
		b = append(strconv.AppendInt(append(b, `{"partition":`...), int64(adv.Partition), 10), ',')
		for _, f := range [...]struct {
			name  string
			value int64
		}{
			{"from", adv.From},
			{"to", adv.To},
			{"epoch", int64(adv.Epoch)},
			{"written", p.Written},
			{"duplicates", p.Duplicates},
			{"dead_letters", p.Letters},
			{"filtered", adv.Filtered},
			{"tombstones_applied", adv.Tombstones},
			{"no_record", adv.NoRecord},
		} {
			b = strconv.AppendInt(append(append(append(b, '"'), f.name...), `":`...), f.value, 10)
			b = append(b, ',')
		}
		b[len(b)-1] = '}'
	}
	return string(append(b, ']'))
}
