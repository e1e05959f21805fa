package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// cause is what a failed request says about the connection behind it.
type cause struct {
	code    string
	addr    string
	words   string // what happened, to follow the address
	hint    string
	certain bool // asking again cannot help: a wrong password, a certificate that does not verify
	refused bool // nobody listens there: seen at once, so waiting long for it is idle
	err     error
}

// Hints of a failed connection.
const (
	hintReach = "Check brokers in the manifest, and that the sidecar's host may reach that address and port."
	hintTLS   = "Check tls.enabled, auth.security_protocol and the port: a listener speaks either TLS or plaintext."
	hintCert  = "Check tls.ca_pem_env, tls.cert_pem_env, tls.key_pem_env and tls.server_name: certificates are always verified."
	hintAuth  = "Check the secrets that auth.username_env and auth.password_env name, and that auth.kind is a mechanism of that listener."
	hintSASL  = "Check auth.kind and the port: this listener may do no SASL, or another mechanism."
	hintNoKey = "Check auth in the manifest: this listener seems to want SASL, and the manifest has auth.kind none."
)

// cause reads an error of the library. It never quotes a credential, and quotes the broker's own words.
func (c *Client) cause(err error) cause {
	out := c.classify(err)
	out.err = err
	out.words = c.scrub(out.words)
	return out
}

func (c *Client) classify(err error) cause {
	var (
		te *tlsError
		de *dialError
	)
	at := c.links.lastFailure()
	switch {
	case errors.As(err, &te):
		return tlsCause(te)
	case errors.As(err, &de):
		return dialCause(de)
	case strings.Contains(err.Error(), "remote error: tls: "): // crypto/tls gives it no type
		return cause{code: codeTLSFailed, addr: at.addr, certain: true, hint: hintCert, words: "refused this client's TLS: " + bare(err)}
	case strings.Contains(err.Error(), "tls alert"):
		return cause{code: codeTLSFailed, addr: at.addr, certain: true, hint: hintTLS, words: "speaks TLS, and was spoken to in plaintext"}
	case strings.Contains(err.Error(), "'HTTP'"):
		return cause{code: codeUnreachable, addr: at.addr, certain: true, hint: hintReach, words: "answers in HTTP: it is no Kafka broker"}
	}
	if out, ok := c.saslCause(err, at); ok {
		return out
	}
	if closed(err) || silent(err) {
		return c.cutCause(err, at)
	}
	var ke *kerr.Error
	if errors.As(err, &ke) {
		return cause{code: codeUnreachable, addr: c.links.lastAnswer(), hint: hintReach, words: "answers " + ke.Message}
	}
	return cause{code: codeUnreachable, addr: at.addr, hint: hintReach, words: "gives no usable answer: " + err.Error()}
}

func dialCause(e *dialError) cause {
	out := cause{code: codeUnreachable, addr: e.addr, hint: hintReach}
	var dns *net.DNSError
	switch {
	case errors.As(e.err, &dns):
		out.words, out.refused = "has a name that does not resolve: "+dns.Err, dns.IsNotFound
	case errors.Is(e.err, syscall.ECONNREFUSED):
		out.words, out.refused = "refuses connections (nobody listens there)", true
	case silent(e.err):
		out.words = "does not answer to a connection"
	default:
		out.words = "cannot be reached: " + bare(e.err)
	}
	return out
}

func tlsCause(e *tlsError) cause {
	out := cause{code: codeTLSFailed, addr: e.addr, hint: hintCert, certain: true}
	var (
		plaintext tls.RecordHeaderError
		unknown   x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
	)
	switch {
	case errors.As(e.err, &plaintext):
		out.words, out.hint = "does not speak TLS: it answered in plaintext", hintTLS
	case errors.As(e.err, &host), errors.As(e.err, &unknown), errors.As(e.err, &invalid), errors.As(e.err, &verify):
		out.words = "has a certificate that does not verify: " + bare(e.err)
	case closed(e.err):
		out.words, out.hint, out.certain = "closed the connection when TLS began: it may speak plaintext", hintTLS, false
	case silent(e.err):
		out.words, out.hint, out.certain = "did not answer when TLS began: it may speak plaintext", hintTLS, false
	default:
		out.words = "failed the TLS handshake: " + bare(e.err)
	}
	return out
}

// saslCause recognises a refusal of SASL: the broker's own error, or a connection that was closed inside the exchange,
// which is how some brokers refuse a password.
func (c *Client) saslCause(err error, at place) (cause, bool) {
	out := cause{code: codeAuthFailed, addr: at.addr, certain: true, hint: hintAuth}
	s := c.o.SASL
	if s == nil {
		if at.key == keyMetadata && closed(err) && !c.links.link(at.addr).served.Load() {
			out.words, out.hint, out.certain = "closed the connection at the first request", hintNoKey, false
			return out, true
		}
		return out, false
	}
	var own *saslError
	in := at.key == keySASLHandshake || at.key == keySASLAuthenticate
	switch {
	case errors.Is(err, kerr.UnsupportedSaslMechanism), errors.Is(err, kerr.IllegalSaslState):
		out.addr = c.links.lastAnswer() // nothing failed to be read: the answer itself is the refusal
		out.words, out.hint = fmt.Sprintf("refuses SASL mechanism %s: %s", s.Mechanism, brokerWords(err)), hintSASL
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		out.addr = c.links.lastAnswer()
		out.words = fmt.Sprintf("refuses the credentials (SASL %s): %s", s.Mechanism, brokerWords(err))
	case in && closed(err):
		out.words = fmt.Sprintf("closed the connection during the SASL %s exchange: most likely it refuses the credentials, or does no SASL there", s.Mechanism)
	case errors.As(err, &own):
		out.addr = own.addr
		out.words = fmt.Sprintf("failed the SASL %s exchange: %s", s.Mechanism, own.err)
	default:
		return out, false
	}
	return out, true
}

// cutCause is a connection that was closed, or fell silent, at a request.
func (c *Client) cutCause(err error, at place) cause {
	out := cause{code: codeUnreachable, addr: at.addr, hint: hintReach}
	fresh := at.key == keyAPIVersions && !c.links.link(at.addr).served.Load()
	switch {
	case fresh && c.o.TLS != nil && closed(err):
		out.code, out.hint = codeTLSFailed, hintCert
		out.words = "closed the connection right after the TLS handshake: it may want a client certificate"
	case fresh && closed(err):
		out.code, out.hint = codeTLSFailed, hintTLS
		out.words = "closed the connection at the first bytes: it may speak TLS, and was spoken to in plaintext"
	case silent(err):
		out.words = "does not answer"
	default:
		out.words = "closed the connection"
	}
	return out
}

// closed tells whether err is the other side hanging up.
func closed(err error) bool {
	for _, is := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, is) {
			return true
		}
	}
	var first *kgo.ErrFirstReadEOF
	return errors.As(err, &first) || strings.Contains(err.Error(), "broker connection has died")
}

// silent tells whether err is the other side saying nothing.
func silent(err error) bool {
	var ne net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &ne) && ne.Timeout()
}

// brokerWords are what the broker said beside its error code.
func brokerWords(err error) string {
	var ke *kerr.Error
	if !errors.As(err, &ke) {
		return err.Error()
	}
	if said := strings.TrimPrefix(strings.TrimPrefix(err.Error(), ke.Error()), ": "); said != "" {
		return ke.Message + ": " + said
	}
	return ke.Message
}

// bare is the innermost error's words: those above it repeat the address.
func bare(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}

// scrub takes the credentials out of a text: a broker may quote what it was sent.
func (c *Client) scrub(s string) string {
	if c.o.SASL == nil {
		return s
	}
	for _, secret := range []string{c.o.SASL.Password, c.o.SASL.Username} {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "***")
		}
	}
	return s
}
