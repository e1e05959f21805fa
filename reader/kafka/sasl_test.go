package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// A password goes to the broker as it is: no character of it ends a string or begins an option.
func TestPasswordsOfAnyCharacters(t *testing.T) {
	t.Parallel()
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-512"} {
		for _, word := range []string{`p"w\`, `x" required debug="true";`, `; ' , = {}`, "pässwörd €", "Endpoint=sb://ns/;SharedAccessKey=a+b/c=="} {
			t.Run(mechanism+" "+word, func(t *testing.T) {
				t.Parallel()
				const name = "$ConnectionString"
				b := setup(t, 1, kfake.EnableSASL(), kfake.Superuser(mechanism, name, word))
				if err := describe(t, Options{Brokers: b.cluster.ListenAddrs(), SASL: &SASL{Mechanism: mechanism, Username: name, Password: word}}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
