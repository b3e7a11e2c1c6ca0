package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrUnreachable is returned when no broker answers in time, or none admits this client.
var ErrUnreachable = errors.New("cannot reach Kafka")

// refusal is a failure whose cause is known.
type refusal struct {
	text  string
	final bool  // waiting does not cure it
	err   error // may be nil
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.err }

// Temporary makes clients that run try on: an operator may cure it meanwhile.
func (r *refusal) Temporary() bool { return true }

// explainHandshake says what the failure of a TLS handshake means.
func explainHandshake(err error, address string, t TLS) error {
	var (
		unknown  x509.UnknownAuthorityError
		invalid  x509.CertificateInvalidError
		hostname x509.HostnameError
		record   tls.RecordHeaderError
	)
	final := func(format string, args ...any) error {
		return &refusal{text: fmt.Sprintf(format, args...), final: true, err: err}
	}
	switch {
	case errors.As(err, &unknown):
		trusted := "this host trusts: set kafka.tls.ca to the certificate of that authority"
		if t.CA != "" {
			trusted = "is in " + t.CA + ": set kafka.tls.ca to the certificate of the authority that did"
		}
		return final("the certificate of %s was not signed by an authority that %s (%v)", address, trusted, err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return final("the certificate of %s is not valid now: it is for %s to %s: renew it on the broker, or check this host's clock", address,
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	case errors.As(err, &hostname):
		return final("the certificate of %s is for another host (%v): address the brokers by the name in it, or set kafka.tls.server_name", address, hostname)
	case errors.As(err, &record):
		return final("%s does not speak TLS: use the brokers' TLS port, or remove kafka.tls", address)
	case isCertificateAlert(err):
		return refusedCertificate(err, address, t)
	case closed(err):
		// Without the cause: the client would take it for a connection that was good before.
		return &refusal{text: fmt.Sprintf("%s closed the connection during the TLS handshake: a port without TLS does so, then use the brokers' TLS port or remove kafka.tls; "+
			"a broker that is stopping does too", address)}
	}
	return fmt.Errorf("TLS handshake with %s: %w", address, err)
}

// explainFirstRead says what the end of a connection means on which nothing was read yet; nil: nothing special.
func explainFirstRead(err error, address string, t TLS) error {
	if isCertificateAlert(err) {
		return refusedCertificate(err, address, t)
	}
	if !closed(err) {
		return nil
	}
	does := "a port that demands client certificates does so, then set kafka.tls.cert and kafka.tls.key"
	if t.Cert != "" {
		does = "a port that refuses the client certificate in " + t.Cert + " does so, then the brokers must trust the authority that signed it"
	}
	return &refusal{text: fmt.Sprintf("%s closed the connection after the TLS handshake (%v): %s; a broker that is stopping does too", address, err, does)}
}

// isCertificateAlert tells whether the other side has refused this one's certificate, or the lack of one. The type of alerts is
// not exported; all that are about certificates say so.
func isCertificateAlert(err error) bool {
	op := (*net.OpError)(nil)
	return errors.As(err, &op) && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate")
}

func refusedCertificate(err error, address string, t TLS) error {
	if t.Cert == "" {
		return &refusal{text: fmt.Sprintf("%s demands a client certificate (%v): set kafka.tls.cert and kafka.tls.key", address, err), final: true, err: err}
	}
	return &refusal{text: fmt.Sprintf("%s refuses the client certificate in %s (%v): the brokers must trust the authority that signed it", address, t.Cert, err), final: true, err: err}
}

// closed tells whether the other side ended the connection.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Explain adds to the error of a request what it means for the settings, if that is known.
func Explain(err error) error {
	text, _ := meaning(err)
	if text == "" || strings.Contains(err.Error(), text) {
		return err
	}
	return fmt.Errorf("%s (%w)", text, err)
}

// meaning is what an error says of the settings, "" if nothing. final: waiting does not cure it.
func meaning(err error) (text string, final bool) {
	var firstRead *kgo.ErrFirstReadEOF
	var r *refusal
	switch {
	case errors.As(err, &r):
		return r.text, r.final
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "the brokers refuse the credentials: check those in kafka.sasl, and that they are for the mechanism and for this cluster", true
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "the brokers do not offer this mechanism on that port: choose another kafka.sasl.mechanism, or another port", true
	case errors.Is(err, kerr.IllegalSaslState):
		return "that port does not ask for authentication: remove kafka.sasl, or use the brokers' SASL port", true
	case errors.As(err, &firstRead):
		return "the brokers closed the connection before they answered: set kafka.tls if the port speaks TLS, kafka.sasl if it asks for authentication; brokers that are stopping do so too", false
	}
	return "", false
}
