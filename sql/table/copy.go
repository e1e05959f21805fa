package table

// AppendCopy appends text as one value of COPY's text format: a backslash, a tab, a line feed and a carriage return are
// escaped, every other byte stands for itself. Text must not hold NUL.
func AppendCopy(dst, text []byte) []byte {
	from := 0
	for i, ch := range text {
		if ch > '\r' && ch != '\\' {
			continue
		}
		esc := byte(0)
		switch ch {
		case '\\':
			esc = '\\'
		case '\t':
			esc = 't'
		case '\n':
			esc = 'n'
		case '\r':
			esc = 'r'
		default:
			continue
		}
		dst = append(append(dst, text[from:i]...), '\\', esc)
		from = i + 1
	}
	return append(dst, text[from:]...)
}

// AppendNull appends COPY's null.
func AppendNull(dst []byte) []byte { return append(dst, '\\', 'N') }
