package kafka

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Layout of what a fetch answer holds: record batches (magic 2), and from before Kafka 0.11 messages (magic 0 and 1). All
// begin with a base offset, a length that does not count these first twelve bytes, four more bytes, and the magic byte.
const (
	logOverhead  = 12 // base offset and length
	magicAt      = 16
	headerMin    = 17 // enough to know what it is
	batchHeader  = 61 // bytes of a record batch before its records
	checksumFrom = 21 // the checksum of a record batch covers everything from here
)

// Attribute bits of a record batch.
const (
	attrCodec         = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is what precedes the records of a batch. For a message of the old formats only base, size and magic are set.
type header struct {
	base      int64
	size      int // bytes of the whole batch
	epoch     int32
	magic     byte
	checksum  uint32
	attrs     uint16
	lastDelta int32
	firstTime int64
	maxTime   int64
	producer  int64
	count     int32
}

// last is the last offset that the batch covers; records of it may have been compacted away.
func (h header) last() int64 { return h.base + int64(h.lastDelta) }

// claims is how many records the header speaks of, as far as it can be believed: even compressed ones take some bits.
func (h header) claims() int {
	const perByteMax = 1000
	return min(int(h.count), h.size*perByteMax)
}

func (h header) is(attr uint16) bool { return h.attrs&attr != 0 }

// readHeader reads the header at the beginning of b. It returns a size above len(b) where the batch was cut off, size 0
// where not even that can be told, and an error where the bytes cannot be the beginning of a batch.
func readHeader(b []byte) (header, error) {
	if len(b) < headerMin {
		return header{}, nil
	}
	h := header{base: int64(binary.BigEndian.Uint64(b)), magic: b[magicAt], epoch: -1}
	length := int64(int32(binary.BigEndian.Uint32(b[8:])))
	if h.base < 0 || length < headerMin-logOverhead {
		return header{}, fmt.Errorf("base offset %d and length %d cannot be", h.base, length)
	}
	h.size = int(length) + logOverhead
	switch h.magic {
	case 0, 1:
		return h, nil
	case 2:
	default:
		return header{}, fmt.Errorf("record format %d is not known", h.magic)
	}
	if h.size < batchHeader {
		return header{}, fmt.Errorf("a record batch of %d bytes cannot be", h.size)
	}
	if len(b) < batchHeader {
		return h, nil // cut off: size says so
	}
	h.epoch = int32(binary.BigEndian.Uint32(b[12:]))
	h.checksum = binary.BigEndian.Uint32(b[17:])
	h.attrs = binary.BigEndian.Uint16(b[21:])
	h.lastDelta = int32(binary.BigEndian.Uint32(b[23:]))
	h.firstTime = int64(binary.BigEndian.Uint64(b[27:]))
	h.maxTime = int64(binary.BigEndian.Uint64(b[35:]))
	h.producer = int64(binary.BigEndian.Uint64(b[43:]))
	h.count = int32(binary.BigEndian.Uint32(b[57:]))
	if h.lastDelta < 0 || h.count < 0 || h.last() < h.base {
		return header{}, fmt.Errorf("a last offset delta of %d and %d records cannot be", h.lastDelta, h.count)
	}
	return h, nil
}

// verify checks the checksum of a whole record batch.
func (h header) verify(b []byte) error {
	if sum := crc32.Checksum(b[checksumFrom:h.size], castagnoli); sum != h.checksum {
		return fmt.Errorf("its checksum is %08x and should be %08x", sum, h.checksum)
	}
	return nil
}

// stretch is what the headers of one partition's answer say.
type stretch struct {
	first   int64 // base offset of the first batch that reaches beyond the position, -1 where none does
	next    int64 // the position behind the last whole batch
	epoch   int32 // leader epoch of that batch
	used    int   // bytes of the whole batches up to there
	records int   // records they claim to hold
	batches int
	cut     int   // bytes that a first batch which was cut off needs; 0 where a whole one came
	err     error // what begins the answer is no batch
}

// scan walks the headers of an answer that was asked for at position from, up to the batch that reaches target. It reads
// no record, so that the next request can go out before this answer is decoded.
func scan(data []byte, from, target int64) stretch {
	s := stretch{first: -1, next: from, epoch: -1}
	for rest := data; len(rest) > 0 && s.next < target; {
		h, err := readHeader(rest)
		if err != nil {
			if s.batches == 0 {
				s.err = err
			}
			break // met again at the head of the next answer
		}
		if h.size == 0 || h.size > len(rest) {
			if s.batches == 0 {
				s.cut = max(h.size, headerMin)
			}
			break
		}
		rest = rest[h.size:]
		s.batches++
		s.used += h.size
		s.records += h.claims()
		if end := h.last() + 1; end > s.next {
			if s.first < 0 {
				s.first = h.base
			}
			s.next, s.epoch = end, h.epoch
		}
	}
	return s
}
