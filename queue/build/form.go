package build

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"highwater/reader/decode"
	"highwater/sql/table"
)

// Bounds of what is remembered about the shapes of messages: of a topic in which hardly two messages have the same fields,
// only so much is kept.
const (
	formsMax      = 1024
	formFieldsMax = 1 << 16 // fields of all forms together
)

// naming says which field becomes which column.
type naming struct {
	rename    map[string]string
	exclude   map[string]bool
	only      map[string]bool // nil: all
	transport map[string]bool // names of the transport columns
	document  bool            // names stay keys of a document: none is cut, none reserved
}

func namingOf(o Options) naming {
	n := naming{rename: o.Rename, exclude: set(o.Exclude), transport: map[string]bool{}, document: o.Layout == LayoutDocument}
	if o.Only != nil {
		n.only = set(o.Only)
	}
	for _, t := range transportsOf(o.Include) {
		n.transport[t.name] = true
	}
	return n
}

func set(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, name := range names {
		m[name] = true
	}
	return m
}

// changes tells whether a document differs from the message.
func (n *naming) changes() bool {
	return len(n.rename) > 0 || len(n.exclude) > 0 || n.only != nil
}

// form is what is known about all messages with the same fields in the same order. It is made once, so that a message of a
// known form costs a comparison of names and nothing else: no map, no sort.
type form struct {
	names    [][]byte
	cells    []cell   // what goes into columns, in the message's order
	hashed   []hashed // what goes into the hash, by column name
	reserved *ReservedError
	letter   string // why no message of this form is a row; empty when it may be
	lacks    bool   // a cell has no column yet

	serial int // of the draft that group and take belong to
	group  int32
	take   []int32 // for each of the group's columns the cell that fills it, or -1
}

// cell is a field on its way to a column.
type cell struct {
	field  int     // index into the message's fields; document for all of them
	name   string  // of the column
	column *column // nil while there is none
}

// document is the field index of the cell that holds the whole object.
const document = -1

// hashed is a field in the hash: its column's name, sized, and where its value is.
type hashed struct {
	name  []byte
	field int
}

// is tells whether the message's fields are the form's.
func (f *form) is(fields []decode.Field) bool {
	if len(fields) != len(f.names) {
		return false
	}
	for i := range fields {
		if !bytes.Equal(fields[i].Name, f.names[i]) {
			return false
		}
	}
	return true
}

// formOf finds the form of the message in hand, or makes it.
func (b *Builder) formOf(fields []decode.Field) *form {
	v := &b.view
	if v.last != nil && v.last.is(fields) {
		return v.last
	}
	key := b.scratch[:0]
	for i := range fields {
		key = binary.AppendUvarint(key, uint64(len(fields[i].Name)))
		key = append(key, fields[i].Name...)
	}
	b.scratch = key
	f, ok := v.forms[string(key)]
	if !ok {
		if len(v.forms) >= formsMax || v.formFields > formFieldsMax {
			clear(v.forms)
			v.formFields = 0
		}
		name := string(key) // newForm may use the scratch
		f = b.newForm(fields)
		v.forms[name] = f
		v.formFields += len(fields)
	}
	v.last = f
	return f
}

// kept is a field that lands, under the name it lands by.
type kept struct {
	field  int
	name   string // of the column, or of the document's key
	source string // the field
}

func (b *Builder) newForm(fields []decode.Field) *form {
	f := &form{names: make([][]byte, len(fields))}
	list := make([]kept, 0, len(fields))
	for i := range fields {
		f.names[i] = bytes.Clone(fields[i].Name)
		k, ok, reserved := b.naming.keep(string(fields[i].Name))
		if reserved != nil && f.reserved == nil {
			f.reserved = reserved
		}
		if k.field = i; ok {
			list = append(list, k)
		}
	}
	if f.reserved != nil {
		return f
	}
	if n := len(list); n > table.MaxColumns && !b.naming.document {
		f.letter = fmt.Sprintf("the message has %d fields, and a table takes at most %d columns; \"layout\": \"document\" keeps the whole message in one column", n, table.MaxColumns)
		return f
	}
	if f.letter = clash(list); f.letter != "" {
		return f
	}
	b.place(f, list)
	f.hashed = make([]hashed, 0, len(list))
	for _, k := range list {
		if !b.naming.document && b.column(k.name, k.source).skip() {
			continue
		}
		f.hashed = append(f.hashed, hashed{name: append(binary.AppendUvarint(nil, uint64(len(k.name))), k.name...), field: k.field})
	}
	return f
}

// keep says under which name a field lands, if it does.
func (n *naming) keep(field string) (k kept, ok bool, reserved *ReservedError) {
	if n.exclude[field] || n.only != nil && !n.only[field] {
		return kept{}, false, nil
	}
	name, renamed := n.rename[field]
	if !renamed {
		name = field
	}
	if n.document {
		return kept{name: name, source: field}, true, nil
	}
	if transport := n.transport[name]; transport || table.Reserved(name) {
		return kept{}, false, &ReservedError{Field: field, Column: name, Transport: transport}
	}
	name, _ = table.ColumnName(name)
	return kept{name: name, source: field}, true, nil
}

// clash sorts the list by column and says which two fields meet in one, if any do.
func clash(list []kept) string {
	slices.SortFunc(list, func(a, b kept) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.field, b.field))
	})
	for i := 1; i < len(list); i++ {
		if a, b := list[i-1], list[i]; a.name == b.name {
			return fmt.Sprintf("the fields %s and %s of one message both go to the column %s", decode.Quote(a.source), decode.Quote(b.source), decode.Quote(a.name))
		}
	}
	return ""
}

// place gives the form its cells: one for each kept field that has or will have a column, or one for the document.
func (b *Builder) place(f *form, list []kept) {
	if b.naming.document {
		f.cells = []cell{{field: document, name: payload, column: b.column(payload, payload)}}
		f.lacks = f.cells[0].column == nil
		return
	}
	f.cells = make([]cell, 0, len(list))
	for _, k := range list {
		c := b.column(k.name, k.source)
		if c.skip() {
			continue
		}
		f.lacks = f.lacks || c == nil
		f.cells = append(f.cells, cell{field: k.field, name: k.name, column: c})
	}
	slices.SortFunc(f.cells, func(a, b cell) int { return cmp.Compare(a.field, b.field) })
}
