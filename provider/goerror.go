package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
)

// ClassifyErr says what a Go error of a call means; nil for nil. An *Error
// inside is returned as it is; a bare Kind, also as the cause of a cancelled
// context, names itself. A deadline is a Timeout. DNS, connections refused,
// reset or ended, and timeouts of connecting are TransportFault. Certificates,
// schemes and URLs are Misconfigured. Anything else is Unknown.
func ClassifyErr(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := asError(err); ok {
		return e
	}
	return &Error{Kind: kindOf(err), Err: err}
}

func kindOf(err error) Kind {
	switch {
	// Before the rest: net/http wraps these in errors that look like the network's.
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case isMisconfigured(err):
		return Misconfigured
	case isTransport(err):
		return TransportFault
	}
	return Unknown
}

// Plain returns the error that has ended a call without an answer. It leaves out the addresses
// of the connection, which differ from call to call. It returns any other error unchanged.
func Plain(err error) error {
	var (
		e  *Error
		u  *url.Error
		op *net.OpError
		no *os.SyscallError
	)
	if errors.As(err, &e) && e.Err != nil && e.Status == 0 && e.Message == "" {
		err = e.Err
	}
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.As(err, &op) && op.Op != "dial" && op.Op != opProxy { // of these the address is news
		err = op.Err
		if errors.As(err, &no) {
			err = no.Err
		}
	}
	return err
}

// opProxy is the operation of a net.OpError whose connection failed at a proxy: net/http's
// own word.
const opProxy = "proxyconnect"

// Unsent reports whether a call certainly never reached the server: no connection to it
// was made. So it drew nothing from a limit.
func Unsent(err error) bool {
	var (
		op  *net.OpError
		dns *net.DNSError
	)
	return errors.As(err, &dns) || errors.As(err, &op) && (op.Op == "dial" || op.Op == opProxy)
}

// isMisconfigured finds faults that no repetition mends.
func isMisconfigured(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		hostname     x509.HostnameError
		invalid      x509.CertificateInvalidError
		roots        x509.SystemRootsError
		record       tls.RecordHeaderError
		address      *net.AddrError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &hostname) ||
		errors.As(err, &invalid) || errors.As(err, &roots) || errors.As(err, &record) ||
		errors.As(err, &address) || errors.Is(err, http.ErrSchemeMismatch) ||
		isBadURL(err) || isRefusedHandshake(err)
}

// isBadURL finds the errors of a request that cannot be made. net/http has no
// types for the last three.
func isBadURL(err error) bool {
	var (
		u      *url.Error
		escape url.EscapeError
		host   url.InvalidHostError
	)
	if errors.As(err, &escape) || errors.As(err, &host) {
		return true
	}
	if !errors.As(err, &u) {
		return false
	}
	text := u.Err.Error()
	return u.Op == "parse" || strings.Contains(text, "unsupported protocol scheme") ||
		strings.Contains(text, "no Host in request URL") || strings.Contains(text, "invalid header field")
}

// isRefusedHandshake finds a handshake that one side ended by rule: no common
// version or cipher, a client certificate missing. crypto/tls exports no type
// for an alert over TCP; its errors begin with "tls: ". An alert that speaks of
// a moment (internal error, bad record) is left to isTransport.
func isRefusedHandshake(err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error") {
		for _, passing := range [...]string{"internal error", "bad record", "user canceled", "decode error"} {
			if strings.Contains(op.Err.Error(), passing) {
				return false
			}
		}
		return true
	}
	return strings.Contains(err.Error(), "tls: server selected unsupported") ||
		strings.Contains(err.Error(), "tls: no supported versions")
}

// isTransport finds the faults of the way. Any other error that http.Client.Do itself
// returns counts as one, too: HTTP/2 and broken connections have
// no exported types.
func isTransport(err error) bool {
	var (
		network net.Error // net.OpError, DNSError, timeouts; also url.Error
		syntax  *json.SyntaxError
	)
	return errors.As(err, &network) || errors.As(err, &syntax) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EPIPE) ||
		isHTTP2(err)
}

// isHTTP2 finds a stream or connection that HTTP/2 ended while a body was read.
// Their types are internal to net/http.
func isHTTP2(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "http2: ") || strings.HasPrefix(text, "stream error: ") ||
		strings.HasPrefix(text, "connection error: ") || strings.HasPrefix(text, "malformed HTTP ")
}
