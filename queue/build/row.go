package build

import (
	"slices"

	"highwater/queue/land"
	"highwater/sql/table"
)

// row writes the message in hand as a row of the draft.
func (b *Builder) row(m *message, f *form) {
	d := &b.draft
	if d.text == nil {
		n := min(d.limit, b.messages)
		d.text = make([]byte, 0, min(n*(b.rowBytes+b.rowBytes/16), b.o.ChunkBytes)+1)
		d.chunk.Rows = make([]land.Row, 0, n)
	}
	g := b.groupOf(f)
	text := d.text
	for _, t := range b.view.carried {
		text = t.write(b, append(text, '\t'), m)
	}
	for _, i := range f.take {
		text = append(text, '\t')
		if i < 0 {
			text = table.AppendNull(text)
			continue
		}
		c := &f.cells[i]
		text = b.write(text, c.column, b.cellField(c))
	}
	d.text = text
	d.ends = append(d.ends, len(text))
	d.widths = append(d.widths, int32(len(f.take)))
	d.hashes = b.hash(d.hashes, m, f)
	d.chunk.Rows = append(d.chunk.Rows, land.Row{Partition: m.partition, Offset: m.record.Offset, Group: g, Raw: source(m.record)})
}

// hash appends the text of the row's _row_hash.
func (b *Builder) hash(dst []byte, m *message, f *form) []byte {
	switch {
	case b.hasher.prefix != "":
		return b.hasher.place(dst, m.partition, m.record.Offset)
	case b.o.Format == FormatRaw:
		return digest(dst, m.record.Value)
	default:
		return b.hasher.fields(dst, b.decoder, f, b.fields)
	}
}

// groupOf finds the group of a form's rows in the draft, and says for each of its columns where the form has it.
func (b *Builder) groupOf(f *form) int32 {
	d := &b.draft
	if f.serial != d.serial {
		f.serial = d.serial
		f.group = d.join(f)
		f.take = f.take[:0]
		for range d.groups[f.group].columns {
			f.take = append(f.take, -1)
		}
		for i := range f.cells {
			f.take[d.groups[f.group].place[f.cells[i].column]] = int32(i)
		}
	}
	// Another form may have brought columns since.
	for len(f.take) < len(d.groups[f.group].columns) {
		f.take = append(f.take, -1)
	}
	return f.group
}

// join finds the group that has the same columns with a default as the form, and adds the form's columns to it.
func (d *draft) join(f *form) int32 {
	var defaults []*column
	for i := range f.cells {
		if c := f.cells[i].column; c.at.HasDefault {
			defaults = append(defaults, c)
		}
	}
	i := slices.IndexFunc(d.groups, func(g *group) bool { return sameColumns(g.defaults, defaults) })
	if i < 0 {
		i = len(d.groups)
		d.groups = append(d.groups, &group{place: map[*column]int32{}, defaults: defaults})
	}
	g := d.groups[i]
	for j := range f.cells {
		c := f.cells[j].column
		if _, ok := g.place[c]; !ok {
			g.place[c] = int32(len(g.columns))
			g.columns = append(g.columns, c)
		}
	}
	d.columns = max(d.columns, len(g.columns))
	return int32(i)
}

// sameColumns compares two sets without repeats.
func sameColumns(a, b []*column) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(c *column) bool { return !slices.Contains(b, c) })
}

// names lists the columns of a group's text.
func (b *Builder) names(g *group) []string {
	names := make([]string, 0, len(b.view.carried)+len(g.columns))
	for _, t := range b.view.carried {
		names = append(names, t.name)
	}
	for _, c := range g.columns {
		names = append(names, c.name)
	}
	return names
}

// fill gives every row the nulls of those columns that came into its group after it was written. Columns with a default are
// never among them: a group's rows all have the same of those.
func (d *draft) fill() {
	missing := 0
	for i := range d.widths {
		missing += len(d.groups[d.chunk.Rows[i].Group].columns) - int(d.widths[i])
	}
	if missing == 0 {
		return
	}
	text, from := make([]byte, 0, len(d.text)+missing*nullBytes), 0
	for i, end := range d.ends {
		text = append(text, d.text[from:end]...)
		for range len(d.groups[d.chunk.Rows[i].Group].columns) - int(d.widths[i]) {
			text = table.AppendNull(append(text, '\t'))
		}
		from, d.ends[i] = end, len(text)
	}
	d.text = text
}

// say adds a finding, once in the builder's life for each name.
func (b *Builder) say(name string, warn bool, message string) {
	if !b.said[name] {
		b.said[name] = true
		b.findings = append(b.findings, land.Finding{Warn: warn, Message: message})
	}
}
