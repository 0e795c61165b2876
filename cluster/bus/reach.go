package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/nats-io/nats.go"
)

// Unreached describes why [Connect] failed, and what to do about it.
func Unreached(line string, err error) Finding {
	hosts := "the bus"
	if a, err := ParseAddress(line); err == nil {
		hosts = strings.Join(a.Hosts, ", ")
	}
	what, why := unreached(err)
	return Finding{Unsafe: true, What: hosts + ": " + what, Why: why}
}

func unreached(err error) (what, why string) {
	var certificate *tls.CertificateVerificationError
	var noHost *net.DNSError
	switch {
	case errors.Is(err, ErrAddress):
		return "this is not a line to join by", "give the whole line that headrace hub prints, in quotes: nats://TOKEN@host:4222…"
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return "it does not let us in: the token (or user and password) is wrong", "take the line that the hub prints now: its token is new where its --dir is"
	case errors.Is(err, ErrNotTheHub):
		return ErrNotTheHub.Error(), "it is another hub, or one whose --dir (or --tls-dir) was lost: take the line that it prints now; or another server answers in its place"
	case errors.As(err, &certificate):
		return "its certificate is not trusted here: " + certificate.Err.Error(), "the line of a hub names its authority, as ?ca=sha256:…: take the whole line"
	case errors.Is(err, nats.ErrSecureConnWanted), errors.Is(err, nats.ErrSecureConnRequired):
		return "it speaks no TLS, or wants it and the line does not say so", "take the whole line that the hub prints, with its ca=…; for servers of others write tls://"
	case errors.As(err, &noHost):
		return "there is no such host", "check the name, or have the hub announce another with --advertise"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nobody listens there", "start headrace hub, and check the port; it must listen on more than 127.0.0.1 for other machines (--listen 0.0.0.0:4222)"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, context.DeadlineExceeded):
		return "it does not answer", "is it that host and port, and does a firewall let them through?"
	}
	return err.Error(), "nothing of a cluster works without its bus"
}

// noted records why the latest attempt to connect failed, which the client does not report.
func (d *dialer) noted(err error) error {
	d.failed.Store(&err)
	return err
}

// failure returns why the latest attempt to connect failed; nil if it succeeded.
func (d *dialer) failure() error {
	if err := d.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// reached adds the reason why no server was reached, where the client gives none.
func (b *Bus) reached(err error) error {
	if failed := b.dialer.failure(); failed != nil && errors.Is(err, nats.ErrNoServers) {
		return fmt.Errorf("%w: %w", nats.ErrNoServers, failed)
	}
	return err
}
