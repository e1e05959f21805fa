package build

import (
	"fmt"

	"highwater/sql/table"
)

// learnFrom makes the view in which columns are found out, beginning with those that the table has.
func (b *Builder) learnFrom(shape *table.Shape) {
	b.view.valid = false
	b.use(shape)
	b.view.learning = true
	b.verdicts = b.verdicts[:0]
	// What was looked up just now was looked up without making up what is missing.
	b.view.columns, b.view.last = map[string]*column{}, nil
	clear(b.view.forms)
	if b.view.raw != nil {
		b.view.raw = b.rawForm()
	}
}

// learn takes note of what a message asks of the table, and of what it is, for [Builder.again].
func (b *Builder) learn(m *message) (sort, error) {
	v, err := b.judge(m)
	if err != nil {
		return nothing, err
	}
	if v.sort == row {
		if v, err = b.ask(m, v); err != nil {
			return nothing, err
		}
	}
	b.verdicts = append(b.verdicts, v)
	return v.sort, nil
}

// again puts a message into the draft as what it was when it was learnt. A letter stays one even where a later message
// brought the column that it lacked: so no message can want something of the table that its chunk does not alter.
func (b *Builder) again(m *message) (sort, error) {
	v := b.verdicts[b.draft.messages]
	if v.sort != row {
		b.set(m, v)
		return v.sort, nil
	}
	became, err := b.put(m)
	if err == nil && became != row {
		return nothing, fmt.Errorf("%s:%d:%d: the message does not fit the columns that were made for it", b.o.Topic, m.partition, m.record.Offset)
	}
	return became, err
}

// ask adds what a message needs to what the chunk alters. A message for which there is no room is a letter and asks nothing.
func (b *Builder) ask(m *message, verdict verdict) (verdict, error) {
	v, f := &b.view, verdict.form
	needs, lacking := b.needs(m, f)
	switch {
	case lacking != "" && b.o.Strict && (v.shape != nil || v.settled):
		return verdict, b.strange(m, lacking)
	case needs > v.room:
		return letterOf(reasonMalformed, b.noRoom(lacking)), nil
	}
	v.room -= needs
	v.missing, v.settled = false, true
	if v.lacksKeyBytes && !isText(m.record.Key) {
		v.lacksKeyBytes, v.needsKeyBytes = false, true
	}
	for i := range f.cells {
		c := f.cells[i].column
		if c.fresh && !c.added {
			c.added = true
			v.added = append(v.added, c)
			b.noteCut(c)
		}
		if field := b.cellField(&f.cells[i]); c.inferred {
			c.seen.Add(kindOf(field.Kind), field.Raw)
			if b.o.Strict { // the first message says what type it is to be
				c.set(table.Infer(c.seen))
				c.inferred = false
			}
		}
	}
	for _, w := range v.wide {
		w.column.set(w.to)
		if !w.column.fresh && !w.column.added {
			w.column.added = true
			v.widened = append(v.widened, w.column)
		}
	}
	return verdict, nil
}

// needs counts the columns that a message would add to the table, and names one that a field of its needs.
func (b *Builder) needs(m *message, f *form) (n int, lacking string) {
	v := &b.view
	for i := range f.cells {
		if c := f.cells[i].column; c.fresh && !c.added {
			n++
			lacking = c.name
		}
	}
	if v.missing {
		for i := range b.transports {
			if _, ok := v.shape.Column(b.transports[i].name); !ok && !b.transports[i].some {
				n++
			}
		}
	}
	if v.lacksKeyBytes && !isText(m.record.Key) {
		n++
	}
	return n, lacking
}

// set gives the column another type.
func (c *column) set(sqlType string) {
	made := table.NewColumn(c.name, sqlType)
	if c.at != nil {
		made.NotNull, made.HasDefault = c.at.NotNull, c.at.HasDefault
	}
	c.at = &made
}

// learnt puts what the messages asked into alters: new columns in the order the messages presented them, transport columns
// behind them, then the widenings.
func (b *Builder) learnt() []table.Alter {
	v := &b.view
	var alters []table.Alter
	for _, c := range v.added {
		if c.inferred {
			c.set(table.Infer(c.seen))
		}
		alters = append(alters, table.Alter{Column: c.name, Field: c.field, Type: c.at.SQLType})
	}
	for i := range b.transports {
		t := &b.transports[i]
		if _, ok := v.shape.Column(t.name); ok || !v.settled || t.some && !v.needsKeyBytes {
			continue
		}
		alters = append(alters, table.Alter{Column: t.name, Field: t.name, Type: t.sqlType})
	}
	for _, c := range v.widened {
		alters = append(alters, table.Alter{Column: c.name, Field: c.field, Type: c.at.SQLType, Widen: true})
	}
	return alters
}
