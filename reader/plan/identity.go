package plan

import (
	"fmt"
	"strings"
)

// identity judges whether the stored positions and the broker speak of the same log: topic name, then cluster, then
// incarnation of the topic. Unknown identities are not judged, they are told.
func (d *decision) identity() *Refusal {
	was, is := d.in.StoredID, d.in.BrokerID
	switch {
	case was.Topic != "" && was.Topic != is.Topic:
		return &Refusal{
			Code: codeTopicRecreated,
			Message: fmt.Sprintf("the stored positions belong to topic %q and the manifest now names topic %q: they mean nothing there",
				was.Topic, is.Topic),
			Hint: d.resetHint("to read the new topic from its start_position"),
		}
	case was.Cluster != "" && is.Cluster != "" && was.Cluster != is.Cluster:
		return &Refusal{
			Code: codeClusterChanged,
			Message: fmt.Sprintf("topic %q: the brokers now belong to cluster %s, the stored positions to cluster %s: they mean nothing there",
				is.Topic, is.Cluster, was.Cluster),
			Hint: "Point brokers back to the old cluster, or run " + d.reset() + " to read the new one from its start_position.",
		}
	case was.TopicID != [16]byte{} && is.TopicID != [16]byte{} && was.TopicID != is.TopicID:
		return &Refusal{
			Code: codeTopicRecreated,
			Message: fmt.Sprintf("topic %q was deleted and created again (topic id %s, the stored positions belong to %s): the old positions mean nothing in it",
				is.Topic, formatID(is.TopicID), formatID(was.TopicID)),
			Hint: d.resetHint("to read the new topic from its start_position"),
		}
	}
	d.anonymous()
	return nil
}

// anonymous warns where the broker has no topic ids: once, on the first read or when the ids vanish, because from then
// on a topic that is created again under its old name cannot be told from the old one.
func (d *decision) anonymous() {
	was, is := d.in.StoredID, d.in.BrokerID
	never := len(d.in.Stored) == 0
	if is.TopicID == [16]byte{} && (never || was.TopicID != [16]byte{}) {
		d.rest = append(d.rest, Finding{Warn: true, Message: fmt.Sprintf(
			"topic %q: the broker gives no topic ids (Kafka has them since 2.8): a topic that is deleted and created again under its name cannot be told from the old one",
			is.Topic)})
	}
}

// strangers refuses positions in partitions that the topic does not have: topics never shrink, so the position was
// sought there by mistake, or the topic is another one.
func (d *decision) strangers() *Refusal {
	has := make(map[int32]bool, len(d.in.Ends))
	for _, e := range d.in.Ends {
		has[e.Partition] = true
	}
	for _, s := range d.in.Stored {
		if has[s.Partition] {
			continue
		}
		if s.Sought {
			return &Refusal{
				Code: codeTopicMissing,
				Message: fmt.Sprintf("partition %d was sought to offset %d, but topic %q has no partition %d (it has %d)",
					s.Partition, s.Next, d.in.BrokerID.Topic, s.Partition, len(d.in.Ends)),
				Hint: d.resetHint("to drop the sought positions, then seek again"),
			}
		}
		return &Refusal{
			Code: codeTopicRecreated,
			Message: fmt.Sprintf("there is a stored position in partition %d (offset %d), but topic %q has no partition %d (it has %d): it is not the topic that was read",
				s.Partition, s.Next, d.in.BrokerID.Topic, s.Partition, len(d.in.Ends)),
			Hint: d.resetHint("to read the topic as it is now from its start_position"),
		}
	}
	return nil
}

// reset is the statement that forgets all positions of this connector.
func (d *decision) reset() string {
	return "SELECT connector.reset_cursor(" + literal(d.in.Connector) + ");"
}

func (d *decision) resetHint(why string) string {
	return "Run " + d.reset() + " " + why + "."
}

// seek is the statement that puts one partition's position at next.
func (d *decision) seek(partition int32, next int64) string {
	return fmt.Sprintf("SELECT connector.seek(%s, %d, %d);", literal(d.in.Connector), partition, next)
}

// literal quotes s for SQL.
func literal(s string) string {
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// formatID writes a topic id as PostgreSQL writes a uuid.
func formatID(id [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16])
}
