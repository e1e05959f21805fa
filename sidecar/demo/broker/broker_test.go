package broker_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"highwater/sidecar/demo/broker"
)

func start(t *testing.T) string {
	t.Helper()
	b, err := broker.Start(t.Context(), broker.Options{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Stop)
	return b.Addr()
}

func client(t *testing.T, addr string, more ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append(more, kgo.SeedBrokers(addr))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestAHandshakeIsRefusedAsAPlainListenerDoes(t *testing.T) {
	c := client(t, start(t))
	for range 2 { // a second client must hear the same
		request := kmsg.NewPtrSASLHandshakeRequest()
		request.Mechanism = "PLAIN"
		answer, err := request.RequestWith(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if answer.ErrorCode != kerr.IllegalSaslState.Code || len(answer.SupportedMechanisms) != 0 {
			t.Errorf("answer %d with mechanisms %v, want %d and none", answer.ErrorCode, answer.SupportedMechanisms, kerr.IllegalSaslState.Code)
		}
	}
	request := kmsg.NewPtrSASLAuthenticateRequest()
	answer, err := request.RequestWith(t.Context(), c)
	if err != nil || answer.ErrorCode != kerr.IllegalSaslState.Code {
		t.Errorf("authenticating gives %v, %v, want code %d", answer, err, kerr.IllegalSaslState.Code)
	}
}

func TestAClientWithAPasswordFails(t *testing.T) {
	addr := start(t)
	c := client(t, addr, kgo.SASL(plain.Auth{User: "acme", Pass: "wrong"}.AsMechanism()))
	if err := c.Ping(t.Context()); !errors.Is(err, kerr.IllegalSaslState) {
		t.Errorf("error %v, want %v", err, kerr.IllegalSaslState)
	}
	if err := client(t, addr).Ping(t.Context()); err != nil {
		t.Errorf("without a password: %v", err)
	}
}

func TestAskingForATopicMakesNone(t *testing.T) {
	c := client(t, start(t))
	request := kmsg.NewPtrMetadataRequest()
	request.AllowAutoTopicCreation = true
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr("acme.absent")
	request.Topics = append(request.Topics, topic)
	for range 2 {
		answer, err := request.RequestWith(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Topics) != 1 || answer.Topics[0].ErrorCode != kerr.UnknownTopicOrPartition.Code {
			t.Errorf("topics %+v, want one that is unknown", answer.Topics)
		}
		if len(answer.Brokers) != 1 {
			t.Errorf("%d brokers, want one", len(answer.Brokers))
		}
	}
}

func TestATakenAddressIsToldApart(t *testing.T) {
	addr := start(t)
	b, err := broker.Start(t.Context(), broker.Options{Addr: addr})
	if err == nil {
		b.Stop()
	}
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), addr) {
		t.Errorf("error %v, want the address in use, named", err)
	}
}
