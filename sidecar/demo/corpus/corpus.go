// Package corpus holds the demo's eleven topics over 2,400 invented ACME partners, and puts them on a broker.
//
// Every message is computed from its index alone, so the same index gives the same bytes on every machine and every day:
// a source whose content moves between runs cannot tell a fix from a coincidence. What the topics are for stands in
// [Topics]; what is made of them, in package manifests.
//
// Types to know: [Topic] and [Message]. **Message i of a topic is the i-th that [Fill] produces, so in a topic with one
// partition i is its offset.**
package corpus

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"hash/crc32"
	"time"
)

// How much each topic holds, in messages, unless its comment says otherwise.
const (
	Partners        = 2400 // partners whose ids are 1000 to 3399
	Orders          = 24000
	OrderPartitions = 6
	DriftFrom       = 1200 // index of the first message with the two new fields
	Raw             = 500
	Poisoned        = 1000 // of which one in seven is no JSON object
	Compacted       = 1000 // partners, before the tombstones
	Tombstones      = 300  // they delete the first keys
	Trimmed         = 5000
)

// Names of the topics.
const (
	TopicPartners  = "acme.partners"
	TopicOrders    = "acme.orders"
	TopicLive      = "acme.live"
	TopicDrift     = "acme.partners-drift"
	TopicRaw       = "acme.partners-raw"
	TopicReserved  = "acme.partners-reserved"
	TopicPoison    = "acme.partners-poison"
	TopicCompacted = "acme.partners-compacted"
	TopicTrimmed   = "acme.partners-trimmed"
	TopicEmpty     = "acme.empty"
	TopicAbsent    = "acme.absent"
)

// Message is one message of a topic. A nil Value is a tombstone.
type Message struct {
	Partition int32
	Key       []byte
	Value     []byte
	At        time.Time // the record's timestamp
}

// Topic is one of the eleven. Absent is never created.
type Topic struct {
	Name       string
	Partitions int32
	Count      int               // messages that Fill produces
	Absent     bool              // asked for in the demo, and on no broker
	Config     map[string]string // beside what all topics have
	make       func(i int) Message
}

// Topics lists the eleven in the order of the manual.
func Topics() []Topic {
	return []Topic{
		{Name: TopicPartners, Partitions: 1, Count: Partners, make: partner},
		{Name: TopicOrders, Partitions: OrderPartitions, Count: Orders, make: order},
		{Name: TopicLive, Partitions: 1, make: partner},
		{Name: TopicDrift, Partitions: 1, Count: Partners, make: drifting},
		{Name: TopicRaw, Partitions: 1, Count: Raw, make: raw},
		{Name: TopicReserved, Partitions: 1, Count: Partners, make: reserved},
		{Name: TopicPoison, Partitions: 1, Count: Poisoned, make: poisoned},
		{Name: TopicCompacted, Partitions: 1, Count: Compacted + Tombstones, Config: compactConfig, make: compacted},
		{Name: TopicTrimmed, Partitions: 1, Count: Trimmed, make: partner},
		{Name: TopicEmpty, Partitions: 1, make: partner},
		{Name: TopicAbsent, Absent: true, make: partner},
	}
}

// compactConfig makes a topic that compacts in name only: the demo's figures count every superseded record, so the
// cleaner must leave them alone for as long as any demo lasts.
var compactConfig = map[string]string{
	"cleanup.policy":            "compact",
	"min.cleanable.dirty.ratio": "1.0",
	"min.compaction.lag.ms":     "315360000000", // ten years
	"segment.ms":                "315360000000", // the active segment is never cleaned
}

// Find gives the topic of that name; for a name that is none of the eleven, one that holds nothing, is fed partners and
// whose Partitions the caller fills in.
func Find(name string) Topic {
	for _, t := range Topics() {
		if t.Name == name {
			return t
		}
	}
	return Topic{Name: name, make: partner}
}

// Message computes message i, from 0. i may be Count or more: that is what feeding the topic further produces.
func (t Topic) Message(i int) Message {
	m := t.make(i)
	if t.Partitions > 1 {
		m.Partition = partitionOf(m.Key, t.Partitions)
	}
	return m
}

// Digest is the SHA-256 over the partitions, keys and values of all messages in their order.
func (t Topic) Digest() [sha256.Size]byte {
	d := NewDigest()
	for i := range t.Count {
		d.Add(t.Message(i))
	}
	return d.Sum()
}

// Digest sums messages in the order in which they are added.
type Digest struct{ sum hash.Hash }

// NewDigest is a digest of no message.
func NewDigest() Digest { return Digest{sum: sha256.New()} }

// Add takes the next message: its partition, key and value, each with its length, so that no two contents run together
// alike. The timestamp is left out, because what feeding adds is stamped when it is sent.
func (d Digest) Add(m Message) {
	b := binary.BigEndian.AppendUint32(nil, uint32(m.Partition))
	for _, part := range [][]byte{m.Key, m.Value} {
		if part == nil {
			b = append(b, 0)
			continue
		}
		b = binary.BigEndian.AppendUint64(append(b, 1), uint64(len(part)))
		b = append(b, part...)
	}
	d.sum.Write(b)
}

// Sum is the digest so far.
func (d Digest) Sum() (out [sha256.Size]byte) {
	d.sum.Sum(out[:0])
	return out
}

// partitionOf places a key as producers built on librdkafka do by default (CRC-32 of the key), which most scripts are.
// The Java client and franz-go use murmur2 and would spread the same keys otherwise.
func partitionOf(key []byte, partitions int32) int32 {
	return int32(crc32.ChecksumIEEE(key) % uint32(partitions))
}
