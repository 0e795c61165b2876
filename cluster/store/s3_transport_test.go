package store

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// A connection on which nothing moves is given up, in both directions; one on which something does is not.
func TestStallingConnections(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	conn := &stalling{here, 50 * time.Millisecond}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	if _, err := conn.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write: %v", err)
	}
	conn.after = time.Hour
	go func() { _, _ = there.Write([]byte("x")) }()
	if n, err := conn.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	go func() { _, _ = there.Read(make([]byte, 1)) }()
	if n, err := conn.Write([]byte("x")); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// The connections that a bucket makes are such.
func TestTransportStalls(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := newTransport().DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if s, ok := conn.(*stalling); !ok || s.after != stallTimeout {
		t.Errorf("%T", conn)
	}
}
