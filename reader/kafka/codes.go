package kafka

import "github.com/twmb/franz-go/pkg/kerr"

// Codes out of the closed list of spec 1.3 that this package gives.
const (
	codeTopicMissing   = "topic_missing"
	codeTopicRecreated = "topic_recreated"
	codeClusterChanged = "cluster_changed"
	codeOffsetsExpired = "offsets_expired"
	codeLogTruncated   = "log_truncated"
	codeTargetLost     = "target_lost"
	codeStalled        = "stalled"
	codeUnreachable    = "broker_unreachable"
	codeBrokerLost     = "broker_lost"
	codeAuthFailed     = "auth_failed"
	codeTLSFailed      = "tls_failed"
	codeNotAuthorized  = "not_authorized"
	codeBatchTooLarge  = "batch_too_large"
	codeInternal       = "internal"
)

// fate is what is done about an error code of the protocol.
type fate uint8

const (
	fateNone   fate = iota // no error
	fateRetry              // ask again after a pause: the broker's own trouble, known or not
	fateLeader             // ask somebody else: metadata first
	fateTopic              // the topic may be gone or another one: metadata decides
	fateRange              // the position is outside the log: the log's ends decide
	fateDenied             // an ACL: stop
	fateAuth               // the credentials: stop
	fateLarge              // the batch is larger than somebody allows: this partition stops
	fateUnfit              // the broker cannot serve this client: this partition stops
)

// fates holds the codes that are not simply asked again. A code that is not here, today's or a later Kafka's, is retried
// with growing pauses until the partition counts as stalled: an unknown word never ends a run on the spot, nor hangs it.
var fates = map[int16]fate{
	0:                                     fateNone,
	kerr.LeaderNotAvailable.Code:          fateLeader,
	kerr.NotLeaderForPartition.Code:       fateLeader,
	kerr.ReplicaNotAvailable.Code:         fateLeader,
	kerr.BrokerNotAvailable.Code:          fateLeader,
	kerr.NetworkException.Code:            fateLeader,
	kerr.KafkaStorageError.Code:           fateLeader,
	kerr.FencedLeaderEpoch.Code:           fateLeader,
	kerr.UnknownLeaderEpoch.Code:          fateLeader,
	kerr.OffsetNotAvailable.Code:          fateLeader,
	kerr.ListenerNotFound.Code:            fateLeader,
	kerr.PreferredLeaderNotAvailable.Code: fateLeader,
	kerr.RebootstrapRequired.Code:         fateLeader,
	kerr.UnknownTopicOrPartition.Code:     fateTopic,
	kerr.UnknownTopicID.Code:              fateTopic,
	kerr.InconsistentTopicID.Code:         fateTopic,
	kerr.OffsetOutOfRange.Code:            fateRange,
	kerr.TopicAuthorizationFailed.Code:    fateDenied,
	kerr.ClusterAuthorizationFailed.Code:  fateDenied,
	kerr.GroupAuthorizationFailed.Code:    fateDenied,
	kerr.SaslAuthenticationFailed.Code:    fateAuth,
	kerr.IllegalSaslState.Code:            fateAuth,
	kerr.UnsupportedSaslMechanism.Code:    fateAuth,
	kerr.MessageTooLarge.Code:             fateLarge,
	kerr.UnsupportedVersion.Code:          fateUnfit,
	kerr.UnsupportedCompressionType.Code:  fateUnfit,
	kerr.UnsupportedForMessageFormat.Code: fateUnfit,
}

func fateOf(code int16) fate {
	if f, ok := fates[code]; ok {
		return f
	}
	return fateRetry
}

// word is the protocol's own name of an error code.
func word(code int16) string {
	if e := kerr.TypedErrorForCode(code); e != nil {
		return e.Message
	}
	return "NONE"
}
