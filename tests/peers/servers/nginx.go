package servers

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Nginx limits before a backend. It has zones of both kinds: "req", which refills at 50 a
// second, and "conn".
type Nginx struct {
	Limit   string // directives of the location, such as "limit_req zone=req burst=20;"
	Latency time.Duration
}

// nginxConf logs each status, and the log is the count. Connections to the backend are kept,
// so that none is the limit, and one worker means one limiter.
const nginxConf = `
daemon off;
pid %[1]s/pid;
error_log stderr crit;
worker_processes 1;
events { worker_connections 4096; }
http {
	log_format status $status;
	access_log %[1]s/statuses status;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	keepalive_requests 1000000;
	limit_req_zone $server_port zone=req:1m rate=50r/s;
	limit_conn_zone $server_port zone=conn:1m;
	upstream backend { server %[3]s; keepalive 256; }
	proxy_http_version 1.1;
	proxy_set_header Connection "";
	server { listen %[2]s; location / { %[4]s proxy_pass http://backend; } }
}
`

// Start starts it.
func (n Nginx) Start() Start {
	return func(ctx context.Context, dir string) (*Peer, error) {
		path, err := find("nginx")
		if err != nil {
			return nil, err
		}
		conf := filepath.Join(dir, "nginx.conf")
		peer, err := behind(ctx, dir, n.Latency, func(front, back string) ([]string, error) {
			text := fmt.Sprintf(nginxConf, dir, front, back, n.Limit)
			return []string{path, "-p", dir, "-c", conf, "-e", "stderr"}, os.WriteFile(conf, []byte(text), 0o600)
		})
		if err != nil {
			return nil, err
		}
		peer.Tally = func() (Tally, error) { return statuses(filepath.Join(dir, "statuses")) }
		return peer, nil
	}
}

// statuses counts a log of one status a line.
func statuses(path string) (t Tally, err error) {
	f, err := os.Open(path)
	if err != nil {
		return t, fmt.Errorf("servers: statuses: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		status, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			return t, fmt.Errorf("servers: statuses: %w", err)
		}
		t.add(status, 1)
	}
	return t, lines.Err()
}
