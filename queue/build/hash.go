package build

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"

	"highwater/reader/decode"
)

// Widths of _row_hash, in characters. The unique index on it is half the cost of a row, so each text is as short as its
// promise allows.
const (
	digestBytes  = 20 // 160 bits of SHA-256
	contentWidth = 27 // of them in base64url without padding
	offsetPrefix = 10 // 50 bits: of the few incarnations of one topic
	nonePrefix   = 16 // 80 bits: of every run that there will be
	placeWidth   = 20 // 7 for the partition's 31 bits, 13 for the offset's 63
)

// ordered are digits that sort as their values do in every collation: figures before letters, and one case of letters.
const ordered = "0123456789abcdefghijklmnopqrstuv"

// hasher makes the text of _row_hash.
type hasher struct {
	width  int
	prefix string // of hashes by position: whose offset it is
	nulls  bool   // a null is content
	form   []byte // canonical form of the content in hand
}

func hasherOf(o Options) hasher {
	switch o.Dedup {
	case DedupOffset:
		return hasher{width: offsetPrefix + placeWidth, prefix: digestText(offsetPrefix, o.ClusterID, o.Topic, string(o.TopicID[:]))}
	case DedupNone:
		return hasher{width: nonePrefix + placeWidth, prefix: digestText(nonePrefix, string(o.RunID[:]))}
	default:
		return hasher{width: contentWidth, nulls: o.Layout == LayoutDocument}
	}
}

// digestText gives the first characters of a digest over parts, none of which can run into the next.
func digestText(width int, parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		writeSized(h, p)
	}
	out := make([]byte, width)
	for i, ch := range h.Sum(nil)[:width] {
		out[i] = ordered[ch%byte(len(ordered))]
	}
	return string(out)
}

func writeSized(h hash.Hash, s string) {
	h.Write(binary.AppendUvarint(nil, uint64(len(s))))
	h.Write([]byte(s))
}

// place appends a text that names a position. It grows with partition and offset, so that the index on it grows at its end.
func (h *hasher) place(dst []byte, partition int32, offset int64) []byte {
	dst = append(dst, h.prefix...)
	dst = appendOrdered(dst, uint64(uint32(partition)), 7)
	return appendOrdered(dst, uint64(offset), 13)
}

func appendOrdered(dst []byte, n uint64, width int) []byte {
	for i := width - 1; i >= 0; i-- {
		dst = append(dst, ordered[n>>(5*i)&31])
	}
	return dst
}

// fields appends the digest of a message's content as it lands: the fields that have a column, by the column's name, without
// those that are null. A document lands whole, so there a null counts.
func (h *hasher) fields(dst []byte, d *decode.Decoder, f *form, fields []decode.Field) []byte {
	form := h.form[:0]
	for _, s := range f.hashed {
		field := &fields[s.field]
		if field.Kind == decode.Null && !h.nulls {
			continue
		}
		form = append(form, s.name...)
		form = d.AppendCanonical(form, *field)
	}
	h.form = form
	return digest(dst, form)
}

// digest appends the shortest text of 160 bits of SHA-256.
func digest(dst, content []byte) []byte {
	sum := sha256.Sum256(content)
	return base64.RawURLEncoding.AppendEncode(dst, sum[:digestBytes])
}
