package harness

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Fake starts an embedded broker on a free loopback port, stopped when the test ends.
func Fake(tb testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	tb.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}
