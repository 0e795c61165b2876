package s3test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// Credentials that a Server takes.
const (
	AccessKey = "headrace"
	SecretKey = "headrace-secret"
)

const (
	folderVariable = "HEADRACE_S3TEST"
	// startTimeout bounds a start on a busy machine; it usually takes half a second.
	startTimeout = time.Minute
	connections  = 1000
	up           = "up"
)

// Serve does not return if this process was started to be a server; otherwise it does nothing. TestMain
// calls it first.
func Serve() {
	folder := os.Getenv(folderVariable)
	if folder == "" {
		return
	}
	if err := serve(folder); err != nil {
		fmt.Fprintln(os.Stderr, "s3test:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs until standard input ends, which it also does when the test is killed.
func serve(folder string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	root := rootOf(folder)
	if err := os.MkdirAll(filepath.Join(root, Bucket), 0o700); err != nil {
		return err
	}
	files, err := posix.New(root, meta.XattrMeta{}, posix.PosixOpts{})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- embedgw.RunVersityGW(ctx, files, &embedgw.Config{
			RootUserAccess: AccessKey, RootUserSecret: SecretKey, Ports: []string{socket(folder)},
			MaxConnections: connections, MaxRequests: connections, MultipartMaxParts: 10000,
			Quiet: true, KeepAlive: true, DisableACLs: true,
		})
	}()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	go announce(folder)
	return <-ended
}

// announce writes to standard output once the server takes connections.
func announce(folder string) {
	for {
		if conn, err := net.Dial("unix", socket(folder)); err == nil {
			_ = conn.Close()
			_, _ = fmt.Println(up) //nolint:forbidigo // the parent process reads it
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func socket(folder string) string { return filepath.Join(folder, "socket") }

// Bucket is the only bucket of a Server.
const Bucket = "bucket"

// Server is a running server.
type Server struct {
	Endpoint string // http://host:port, of the proxy
	folder   string
	faults
}

// Start starts a server with an empty bucket, and stops it when the test is over. It sets the variables
// by which clients find credentials and region, for the test and its child processes.
func Start(t testing.TB) *Server {
	t.Helper()
	s := StartBeside(t)
	for name, value := range environment {
		t.Setenv(name, value)
	}
	return s
}

// StartBeside is Start for a test that runs in parallel with others, and so sets no variables of its
// process. The test passes those of Environment to its child processes.
func StartBeside(t testing.TB) *Server {
	t.Helper()
	folder, err := os.MkdirTemp("", "s3test") // the name of a socket has 100 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	start(t, folder)
	return proxy(t, folder)
}

// environment holds the variables for a client of a Server.
var environment = map[string]string{
	"AWS_ACCESS_KEY_ID": AccessKey, "AWS_SECRET_ACCESS_KEY": SecretKey, "AWS_SESSION_TOKEN": "", "AWS_REGION": "us-east-1",
}

// Environment returns the variables for a client process, as exec.Cmd takes them.
func (s *Server) Environment() (all []string) {
	for name, value := range environment {
		all = append(all, name+"="+value)
	}
	return all
}

// Put writes an object, as a user outside the tested processes would.
func (s *Server) Put(t testing.TB, name string, content []byte) {
	t.Helper()
	client, err := minio.New(strings.TrimPrefix(s.Endpoint, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(AccessKey, SecretKey, ""), Region: environment["AWS_REGION"],
	})
	if err == nil {
		_, err = client.PutObject(context.Background(), Bucket, name, bytes.NewReader(content), int64(len(content)), minio.PutObjectOptions{DisableMultipart: true})
	}
	if err != nil {
		t.Fatalf("s3test: put %s: %v", name, err)
	}
}

// Folder returns the folder in which the objects under a prefix lie as files, for a test that bypasses the server.
func (s *Server) Folder(prefix string) string { return filepath.Join(rootOf(s.folder), Bucket, prefix) }

func rootOf(folder string) string { return filepath.Join(folder, "root") }

// start starts the child, and waits until it takes connections.
func start(t testing.TB, folder string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), folderVariable+"="+folder)
	var said bytes.Buffer // deliberate faults make it write much
	child.Stderr = &said
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(startTimeout, func() { _ = child.Process.Kill() })
	ready := false
	for lines := bufio.NewScanner(out); !ready && lines.Scan(); {
		ready = lines.Text() == up
	}
	late.Stop()
	if !ready {
		_ = in.Close()
		_ = child.Wait()
		t.Fatalf("s3test: the server did not start: does TestMain call Serve? It said: %s", said.String())
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = child.Wait()
	})
}

// proxy listens for clients, and asks the rule for the fate of their requests.
func proxy(t testing.TB, folder string) *Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket(folder))
		},
		MaxIdleConnsPerHost: 64, DisableCompression: true,
	}
	s := &Server{Endpoint: "http://" + listener.Addr().String(), folder: folder}
	s.forward = &httputil.ReverseProxy{
		// The signature is over the host that the client asked, which Out keeps.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "gateway"
			r.Out.Host = r.In.Host
		},
		Transport:      transport,
		ModifyResponse: s.noteCreated,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:       silent,
	}
	server := &http.Server{Handler: &s.faults, ErrorLog: silent}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-over
		transport.CloseIdleConnections()
	})
	return s
}

// Address returns the address for store.Open of the objects under a prefix.
func (s *Server) Address(prefix string) string {
	return fmt.Sprintf("s3://%s/%s?endpoint=%s", Bucket, prefix, url.QueryEscape(s.Endpoint))
}
