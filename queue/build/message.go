package build

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"highwater/queue/land"
	"highwater/reader/decode"
	"highwater/reader/kafka"
	"highwater/sql/table"
)

// Reasons of dead letters, as connector.dlq shows them.
const (
	reasonMalformed = "MalformedSource"
	reasonType      = "TypeConflict"
	reasonTooLarge  = "TooLarge"
)

// message is a record with its partition.
type message struct {
	partition int32
	record    *kafka.Record
}

// What a message is.
const (
	row      sort = iota // form and fields of the builder hold it
	letter               // with reason and why
	filtered             // passed over by the manifest's filter
	wants                // a row, once the table has another column or a wider one
	nothing              // no message at all
)

type sort uint8

// verdict says what a message is; form, reason and why as far as that asks for them.
type verdict struct {
	sort   sort
	form   *form
	reason string
	why    string
}

func letterOf(reason, why string) verdict { return verdict{sort: letter, reason: reason, why: why} }

// judge says what a message is. An error ends the run. The form and fields of a row stay in the builder until the next call.
func (b *Builder) judge(m *message) (verdict, error) {
	r := m.record
	switch {
	case !b.o.Filter.takes(r):
		return verdict{sort: filtered}, nil
	case r.TooLarge > 0 || b.o.MaxMessageBytes > 0 && len(r.Value) > b.o.MaxMessageBytes:
		return letterOf(reasonTooLarge, fmt.Sprintf("the value has %d bytes, and max_message_bytes is %d", max(r.TooLarge, len(r.Value)), b.o.MaxMessageBytes)), nil
	case r.Value == nil:
		return letterOf(reasonMalformed, tombstone(r.Key)), nil
	}
	f, refusal := b.take(r.Value)
	if refusal != nil {
		return letterOf(reasonMalformed, refusal.Message), nil //nolint:nilerr // a refusal is a letter, not a fault of the run
	}
	switch {
	case f.reserved != nil:
		e := *f.reserved
		e.Topic, e.Partition, e.Offset = b.o.Topic, m.partition, r.Offset
		return verdict{}, &e
	case f.letter != "":
		return letterOf(reasonMalformed, f.letter), nil
	}
	return b.match(m, f)
}

// takes tells whether a filter lets a message through. A repeated header counts with each of its values.
func (f *Filter) takes(r *kafka.Record) bool {
	if f == nil {
		return true
	}
	if f.KeyPrefix != "" && !bytes.HasPrefix(r.Key, []byte(f.KeyPrefix)) {
		return false
	}
	for name, values := range f.Headers {
		if !slices.ContainsFunc(r.Headers, func(h kafka.Header) bool { return h.Key == name && slices.Contains(values, string(h.Value)) }) {
			return false
		}
	}
	return true
}

// keyShown bounds what a tombstone's letter shows of the key, in bytes; the letter keeps the whole of it.
const keyShown = 120

func tombstone(key []byte) string {
	if key == nil {
		return "Kafka tombstone without a key: the value is null, so the producer meant a deletion that names nothing"
	}
	shown := decode.QuoteUpTo(key, keyShown)
	return fmt.Sprintf("Kafka tombstone (key '%s'): the value is null, so the producer deleted that key; append-only ingestion sets the marker aside and keeps the table's rows",
		shown[1:len(shown)-1])
}

// take reads a value into the builder's fields and finds its form.
func (b *Builder) take(value []byte) (*form, *decode.Refusal) {
	if b.o.Format == FormatRaw {
		b.fields = append(b.fields[:0], decode.Field{Raw: value, Kind: decode.String, Plain: true})
		return b.view.raw, nil
	}
	var refusal *decode.Refusal
	if b.fields, refusal = b.decoder.Object(value, b.fields[:0]); refusal != nil {
		return nil, refusal
	}
	f := b.formOf(b.fields)
	if b.naming.document && f.letter == "" {
		b.whole = decode.Field{Raw: b.decoder.Document(), Kind: decode.Object}
		if b.naming.changes() {
			b.draft.document = b.appendDocument(b.draft.document[:0], f)
			b.whole.Raw = b.draft.document
		}
	}
	return f, nil
}

// appendDocument writes the object that is left of a message after only, exclude and rename, in the message's order.
func (b *Builder) appendDocument(dst []byte, _ *form) []byte {
	dst = append(dst, '{')
	for i := range b.fields {
		k, ok, _ := b.naming.keep(string(b.fields[i].Name))
		if !ok {
			continue
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst, _ = jsontext.AppendQuote(dst, k.name) // names are valid UTF-8, or the message had been refused
		dst = append(append(dst, ':'), b.fields[i].Raw...)
	}
	return append(dst, '}')
}

// cellField gives the field that a cell holds.
func (b *Builder) cellField(c *cell) *decode.Field {
	if c.field == document {
		return &b.whole
	}
	return &b.fields[c.field]
}

// match holds every value of a message against its column. A conflict makes a letter whatever else the message wants: a
// message that does not land asks nothing of the table.
func (b *Builder) match(m *message, f *form) (verdict, error) {
	b.view.wide = b.view.wide[:0]
	for i := range f.cells {
		c := &f.cells[i]
		if c.column == nil {
			continue
		}
		field := b.cellField(c)
		fit := b.fit(c.column, field)
		if fit == table.Fits {
			continue
		}
		if v, err := b.misfit(m, c.column, field, fit); err != nil || v.sort == letter {
			return v, err
		}
	}
	if ts := m.record.Timestamp; ts != noTimestamp && b.naming.transport["_timestamp"] {
		if why := badTimestamp(ts); why != "" {
			return letterOf(reasonMalformed, why), nil
		}
	}
	return b.settle(m, f)
}

// misfit says what a value means that its column cannot take as it is: a letter, the run's end, or a widening, of which it
// takes note.
func (b *Builder) misfit(m *message, c *column, field *decode.Field, fit table.Fit) (verdict, error) {
	number := field.Kind == decode.Int || field.Kind == decode.Number
	frozen := c.at != nil && c.at.Frozen != "" && (b.o.TypeChange == TypeChangeWiden || number)
	switch {
	case frozen:
		return letterOf(reasonType, b.conflict(c, field)+"; it cannot be widened: "+c.at.Frozen), nil
	case fit == table.Widens:
		b.view.wide = append(b.view.wide, widening{column: c, to: table.Wider})
		return verdict{sort: wants}, nil
	case b.o.Strict:
		return verdict{}, b.changed(m, codeStrict, "schema is strict: "+b.conflict(c, field))
	case b.o.TypeChange == TypeChangeFail:
		return verdict{}, b.changed(m, codeChanged, "type_change is fail: "+b.conflict(c, field))
	case b.o.TypeChange != TypeChangeWiden || c.base64:
		return letterOf(reasonType, b.conflict(c, field)), nil
	}
	b.view.wide = append(b.view.wide, widening{column: c, to: "text"})
	return verdict{sort: wants}, nil
}

// settle says whether the message can land as the table is. While columns are being learnt it always can.
func (b *Builder) settle(m *message, f *form) (verdict, error) {
	v := &b.view
	lacks := f.lacks || v.missing || v.lacksKeyBytes && !isText(m.record.Key)
	switch {
	case v.learning:
		return verdict{sort: row, form: f}, nil
	case lacks && v.room == 0:
		return letterOf(reasonMalformed, b.noRoom(f.lacking())), nil
	case f.lacks && b.o.Strict && v.shape != nil:
		return verdict{}, b.strange(m, f.lacking())
	case lacks, len(v.wide) > 0, v.shape == nil:
		return verdict{sort: wants, form: f}, nil
	}
	return verdict{sort: row, form: f}, nil
}

// lacking names the first column that a form's messages need and the table has not.
func (f *form) lacking() string {
	for _, c := range f.cells {
		if c.column == nil {
			return c.name
		}
	}
	return ""
}

func (b *Builder) noRoom(column string) string {
	if b.view.full != "" {
		return fmt.Sprintf("there is no column for %s: %s", decode.Quote(column), b.view.full)
	}
	return fmt.Sprintf("the message needs more columns, %s among them, than the %d that the table has room for; \"layout\": \"document\" keeps the whole message in one column",
		decode.Quote(column), b.view.room)
}

func (b *Builder) changed(m *message, code, why string) error {
	return &SchemaError{Code: code, Topic: b.o.Topic, Partition: m.partition, Offset: m.record.Offset, Why: why}
}

// strange is the error of a field that a strict schema does not know.
func (b *Builder) strange(m *message, column string) error {
	return b.changed(m, codeStrict, fmt.Sprintf("schema is strict: the field %s has no column", decode.Quote(column)))
}

// conflict says in words why a value does not fit its column.
func (b *Builder) conflict(c *column, f *decode.Field) string {
	s := fmt.Sprintf("the field %s is %s, and its column is %s", decode.Quote(c.field), b.shown(f), c.sqlType())
	switch {
	case c.base64:
		return s + " written as base64"
	case c.at.Type == table.Other, c.at.Type == table.Decimal:
		return s + ", which would not keep it exactly"
	}
	return s
}

// shown says a value in a few words.
func (b *Builder) shown(f *decode.Field) string {
	switch f.Kind {
	case decode.String:
		return "the string " + decode.Quote(b.textOf(f))
	case decode.Int, decode.Number:
		shown := decode.Quote(f.Raw)
		return "the number " + shown[1:len(shown)-1]
	case decode.Object:
		return "the object " + decode.Quote(f.Raw)
	case decode.Array:
		return "the array " + decode.Quote(f.Raw)
	default:
		return string(f.Raw)
	}
}

// source is what a letter keeps of a message, and a row in case it becomes one.
func source(r *kafka.Record) land.Source {
	return land.Source{Key: r.Key, Value: r.Value, Headers: r.Headers}
}
