package kafka

import (
	"errors"
	"fmt"
	"slices"
)

var errTruncated = errors.New("it ends inside a record")

// cursor walks the bytes of decompressed records. After a failed read ok is false and stays so.
type cursor struct {
	b   []byte
	at  int
	bad bool
}

// varint reads a zigzag varint of at most ten bytes.
func (c *cursor) varint() int64 {
	var u uint64
	for shift := uint(0); shift < 70; shift += 7 {
		if c.at >= len(c.b) {
			break
		}
		x := c.b[c.at]
		c.at++
		u |= uint64(x&0x7f) << shift
		if x < 0x80 {
			return int64(u>>1) ^ -int64(u&1)
		}
	}
	c.bad = true
	return 0
}

// bytes reads a length and so many bytes, nil for a length of -1. What it returns points into the buffer and cannot be
// appended to over its end.
func (c *cursor) bytes() []byte {
	n := c.varint()
	if n < 0 {
		if n < -1 {
			c.bad = true
		}
		return nil
	}
	if c.bad || n > int64(len(c.b)-c.at) {
		c.bad = true
		return nil
	}
	from := c.at
	c.at += int(n)
	return c.b[from:c.at:c.at]
}

// rawRecord is a record as the log has it.
type rawRecord struct {
	offsetDelta int64
	timeDelta   int64
	key, value  []byte
	headers     []Header
}

// record reads one record and sets c behind it. Headers are put at the end of arena, which is returned; the record's own
// point into it.
func (c *cursor) record(arena []Header) (rawRecord, []Header, error) {
	length := c.varint()
	if c.bad || length < 1 || length > int64(len(c.b)-c.at) {
		return rawRecord{}, arena, errTruncated
	}
	end := c.at + int(length)
	in := cursor{b: c.b[:end], at: c.at + 1} // past the record's attributes, which are unused
	var r rawRecord
	r.timeDelta = in.varint()
	r.offsetDelta = in.varint()
	r.key = in.bytes()
	r.value = in.bytes()
	if n := in.varint(); n != 0 {
		if n < 0 || n > int64(end-in.at) {
			return rawRecord{}, arena, fmt.Errorf("a record claims %d headers", n)
		}
		arena, r.headers = in.headers(int(n), arena)
	}
	if in.bad || in.at != end {
		return rawRecord{}, arena, errTruncated
	}
	c.at = end
	return r, arena, nil
}

func (c *cursor) headers(n int, arena []Header) (whole, own []Header) {
	if cap(arena)-len(arena) < n {
		arena = make([]Header, 0, max(n, headerArena)) // what was handed out keeps the old one
	}
	from := len(arena)
	for range n {
		key := c.bytes()
		value := c.bytes()
		if c.bad {
			return arena[:from], nil
		}
		arena = append(arena, Header{Key: string(key), Value: value})
	}
	return arena, slices.Clip(arena[from:])
}

// headerArena is how many headers are allocated at once.
const headerArena = 1024
