package servers

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// HAProxy limits before a backend.
type HAProxy struct {
	Rules   string // of the frontend, a line each
	MaxConn int    // most calls at once at the backend; 0 is no bound
	Latency time.Duration
}

// haproxyConf keeps a call for a minute in the queue of a full backend, longer than any run
// here makes it wait. An unused connection (a client opens some in reserve) is no bad
// request.
const haproxyConf = `
global
	maxconn 4096
	stats socket %[1]s/stats
defaults
	mode http
	option http-ignore-probes
	timeout connect 5s
	timeout client 60s
	timeout server 60s
	timeout queue 60s
frontend peer
	bind %[2]s
%[4]s
	default_backend answers
backend answers
	server one %[3]s maxconn %[5]d
`

// Start starts it.
func (h HAProxy) Start() Start {
	return func(ctx context.Context, dir string) (*Peer, error) {
		path, err := find("haproxy")
		if err != nil {
			return nil, err
		}
		conf := filepath.Join(dir, "haproxy.cfg")
		peer, err := behind(ctx, dir, h.Latency, func(front, back string) ([]string, error) {
			text := fmt.Sprintf(haproxyConf, dir, front, back, h.Rules, h.MaxConn)
			return []string{path, "-db", "-f", conf}, os.WriteFile(conf, []byte(text), 0o600)
		})
		if err != nil {
			return nil, err
		}
		peer.Tally = func() (Tally, error) { return stats(filepath.Join(dir, "stats")) }
		return peer, nil
	}
}

// stats reads HAProxy's own counters. They count by the hundred, which is enough: 4xx is its
// 429 and 5xx its 503, as the backend here never answers with either.
func stats(socket string) (t Tally, err error) {
	rows, err := show(socket)
	if err != nil {
		return t, fmt.Errorf("servers: stats: %w", err)
	}
	for _, row := range rows {
		if row[0] == "peer" && row[1] == "FRONTEND" {
			return frontend(rows[0], row)
		}
	}
	return t, fmt.Errorf("servers: stats: no frontend in %d rows", len(rows))
}

func show(socket string) ([][]string, error) {
	c, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // it was only read
	if _, err = io.WriteString(c, "show stat\n"); err != nil {
		return nil, err
	}
	return csv.NewReader(c).ReadAll()
}

// frontend adds up the responses in the frontend's row. Each class of status counts as the one
// status of it that HAProxy gives here.
func frontend(names, row []string) (t Tally, err error) {
	for i, name := range names {
		class, is := strings.CutPrefix(name, "hrsp_")
		status, known := map[string]int64{"2xx": 200, "4xx": 429, "5xx": 503}[class]
		if !is || !known {
			continue
		}
		times, err := strconv.ParseInt(row[i], 10, 64)
		if err != nil {
			return t, fmt.Errorf("servers: stats: %w", err)
		}
		t.add(status, times)
	}
	return t, nil
}
