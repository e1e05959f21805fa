package e2e

import (
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Every offset of a topic is traced to what it became, in several partitions and after a second run.
func TestTraceFindsEveryMessage(t *testing.T) {
	onBothBrokers(t, func(t *testing.T, f *fixture) {
		topic := f.topic("trace", 2, nil)
		f.produce(topic, 0, partners(0, 700)...)
		f.produce(topic, 1, partners(1000, 40)...)
		f.produce(topic, 1, "not json", partners(0, 1)[0])
		f.sidecar(nil)
		f.declare("trace", topic, "")
		f.run("trace")
		f.transact(topic, kgo.TryCommit, partners(5000, 1)...)
		f.produce(topic, 1, partners(6000, 1)...)
		const runsMax = 50 // Kafka writes the marker after it has answered the commit
		for range runsMax {
			f.run("trace")
			if f.text("SELECT cursor->'offsets'->>'0' FROM connector.connector_cursor WHERE connector = 'trace'") == "702" {
				break
			}
		}
		for _, c := range []struct {
			partition, offset int
			outcome, field    string
		}{
			{0, 0, "row", "1000"},
			{0, 350, "row", "1350"},
			{0, 699, "row", "1699"},
			{0, 700, "row", "6000"},
			{1, 0, "row", "2000"},
			{1, 39, "row", "2039"},
			{1, 42, "row", "7000"},
			{1, 40, "dead letter", ""},
			{1, 41, "row or duplicate", ""},
			{0, 701, "no record", ""},
			{0, 702, "not read yet", ""},
		} {
			outcome := f.text("SELECT outcome FROM connector.trace('trace', $1, $2)", c.partition, c.offset)
			detail := f.text("SELECT detail FROM connector.trace('trace', $1, $2)", c.partition, c.offset)
			if c.outcome == "row or duplicate" && (outcome == "filtered or duplicate" || outcome == "row") { // which of the two equal messages came first is for the broker to say
				continue
			}
			if outcome != c.outcome {
				t.Errorf("%d:%d is %s (%s), want %s", c.partition, c.offset, outcome, detail, c.outcome)
			}
			if id, ok := strings.CutPrefix(detail, "id "); ok && c.field != "" {
				n, err := strconv.Atoi(strings.Fields(id)[0])
				if err != nil {
					t.Fatal(detail)
				}
				f.want(c.field, "SELECT partner_id FROM connector.t_trace WHERE id = $1", n)
			}
		}
	})
}
