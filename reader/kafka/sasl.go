package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// saslError is an exchange that failed on this side: the broker's answer was not what the mechanism asks for.
type saslError struct {
	addr string
	err  error
}

func (e *saslError) Error() string { return fmt.Sprintf("SASL with %s: %v", e.addr, e.err) }
func (e *saslError) Unwrap() error { return e.err }

// mechanism is the library's, with its errors given a type.
func mechanism(s SASL) (sasl.Mechanism, error) {
	switch s.Mechanism {
	case "PLAIN":
		return typed{plain.Auth{User: s.Username, Pass: s.Password}.AsMechanism()}, nil
	case "SCRAM-SHA-256":
		return typed{scram.Auth{User: s.Username, Pass: s.Password}.AsSha256Mechanism()}, nil
	case "SCRAM-SHA-512":
		return typed{scram.Auth{User: s.Username, Pass: s.Password}.AsSha512Mechanism()}, nil
	}
	return nil, fmt.Errorf("SASL mechanism %q is not known: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 are", s.Mechanism)
}

type typed struct{ sasl.Mechanism }

func (t typed) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	s, first, err := t.Mechanism.Authenticate(ctx, host)
	if err != nil {
		return nil, nil, &saslError{addr: host, err: err}
	}
	return typedSession{Session: s, addr: host}, first, nil
}

type typedSession struct {
	sasl.Session
	addr string
}

func (t typedSession) Challenge(said []byte) (bool, []byte, error) {
	done, next, err := t.Session.Challenge(said)
	if err != nil {
		return false, nil, &saslError{addr: t.addr, err: err}
	}
	return done, next, nil
}
