package provider

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
)

// Plain drops the addresses of a connection that was made, which differ from call to call, and
// keeps those of one that was not.
func TestPlain(t *testing.T) {
	here, there := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 54716}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443}
	post := func(err error) error { return &url.Error{Op: "Post", URL: "http://127.0.0.1/v1", Err: err} }
	op := func(op string, err error) error {
		return &net.OpError{Op: op, Net: "tcp", Source: here, Addr: there, Err: err}
	}
	reset := os.NewSyscallError("read", syscall.ECONNRESET)
	for want, err := range map[string]error{
		"connection reset by peer": post(op("read", reset)),
		"EOF":                      post(io.EOF),
		"use of closed connection": op("write", errors.New("use of closed connection")),
		"dial tcp 127.0.0.1:54716->127.0.0.1:443: connect: connection refused": post(op("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED))),
		"odd: of another kind": fmt.Errorf("odd: %w", errors.New("of another kind")),
		"unexpected EOF":       &Error{Kind: TransportFault, Err: post(io.ErrUnexpectedEOF)},
	} {
		if got := Plain(err).Error(); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	said := &Error{Kind: Server, Status: 500, Message: "it broke", Err: errors.New("more")}
	if !errors.Is(Plain(said), said) {
		t.Errorf("%v is made %v", said, Plain(said))
	}
}
