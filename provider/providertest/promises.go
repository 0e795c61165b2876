package providertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/provider"
)

// spellings returns the forms in which a body may repeat the key: as it is, as JSON may escape it,
// and as JSON in a text of JSON's.
func spellings(key string) []string {
	escaped := func(format string) string {
		var all strings.Builder
		for _, c := range []byte(key) {
			fmt.Fprintf(&all, format, c)
		}
		return all.String()
	}
	return []string{
		key,
		strings.ReplaceAll(key, "-", `\u002d`), strings.ReplaceAll(key, "-", `\u002D`),
		escaped(`\u%04x`), escaped(`\u%04X`),
		strings.ReplaceAll(key, "-", `\\u002d`),
	}
}

// echoedKey proves that a gateway that repeats the request does not bring the
// key into an error or an answer.
func echoedKey(t *testing.T, newClient func(string) Doer) {
	bodies := map[string]int{
		`{"error":{"message":"bad key Bearer KEY","code":"KEY","type":"KEY","param":"KEY"}}`:              http.StatusOK,
		`{"error":{"message":"bad key KEY","code":"KEY","type":"KEY","param":"KEY"},"object":"error"}`:    http.StatusUnauthorized,
		`{"error":{"message":"KEY!","code":500,"metadata":{"raw":"{\"m\":\"KEY\"}"}}}`:                    http.StatusInternalServerError,
		`{"choices":[{"message":{"content":"it is KEY"},"finish_reason":"KEY"}],"usage":{"KEY":"\nKEY"}}`: http.StatusOK,
	}
	for body, status := range bodies {
		for _, spelled := range spellings(Key) {
			client, _ := serve(t, newClient, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Request-Id", r.Header.Get("Authorization")+r.Header.Get("X-Api-Key"))
				w.WriteHeader(status)
				_, _ = io.WriteString(w, strings.ReplaceAll(body, "KEY", spelled))
			})
			if e, _ := ask(context.Background(), t, client); (e == nil) != strings.Contains(body, "choices") {
				t.Errorf("status %d, %s: %v", status, body, e)
			}
		}
	}
}

// echoAtBound proves that an echoed key stays out of an error whose kept part ends within the key.
func echoAtBound(t *testing.T, newClient func(string) Doer) {
	client, _ := serve(t, newClient, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, strings.Repeat("x", provider.MaxErrorBody-len(Key)+4)+Key+Key)
	})
	if e, _ := ask(context.Background(), t, client); e == nil {
		t.Error("no error")
	}
}

// endless is the number of bytes that an endless body sends before the test gives up: over
// any client's bound.
const endless = 512 << 20

// endlessBody proves that an answer without an end is left, and means what its status says.
func endlessBody(status int, want provider.Kind) func(*testing.T, func(string) Doer) {
	return func(t *testing.T, newClient func(string) Doer) {
		client, _ := serve(t, newClient, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			chunk := []byte(strings.Repeat(" ", 1<<20))
			for sent := 0; sent < endless; sent += len(chunk) {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
			t.Error("the client read half a gigabyte")
		})
		if e, _ := ask(context.Background(), t, client); e == nil || e.Kind != want {
			t.Errorf("got %v, want kind %v", e, want)
		}
	}
}

// otherHostRedirect proves that a redirect to another server is a misconfiguration, and that no
// request goes there.
func otherHostRedirect(t *testing.T, newClient func(string) Doer) {
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			t.Errorf("status %d was followed", status)
		}))
		t.Cleanup(stranger.Close)
		client, _ := serve(t, newClient, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, stranger.URL+r.URL.Path, status)
		})
		e, _ := ask(context.Background(), t, client)
		if e == nil || e.Kind != provider.Misconfigured {
			t.Errorf("status %d: got %v, want kind misconfigured", status, e)
		}
	}
}

// droppingRedirect proves that a redirect that turns the POST into a GET is not followed.
func droppingRedirect(t *testing.T, newClient func(string) Doer) {
	client, calls := serve(t, newClient, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/v1/elsewhere", http.StatusFound)
	})
	e, _ := ask(context.Background(), t, client)
	if e == nil || e.Kind != provider.Misconfigured || calls.Load() != 1 {
		t.Errorf("got %v after %d calls, want kind misconfigured after 1", e, calls.Load())
	}
}

// hangingClient serves requests that are not answered until the client is gone.
func hangingClient(t *testing.T, newClient func(string) Doer, arrived chan<- struct{}) Doer {
	client, _ := serve(t, newClient, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server sees a client leave only when the body is read
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	return client
}

func deadline(t *testing.T, newClient func(string) Doer) {
	client := hangingClient(t, newClient, make(chan struct{}, 1))
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer stop()
	expectKind(ctx, t, client, provider.Timeout)
}

// deadlineByCause proves that a cancel whose cause is a deadline gives a timeout. The cancel comes
// while the server works on the call.
func deadlineByCause(t *testing.T, newClient func(string) Doer) {
	for _, cause := range []error{context.DeadlineExceeded, provider.Timeout} {
		arrived := make(chan struct{}, 1)
		client := hangingClient(t, newClient, arrived)
		ctx, stop := context.WithCancelCause(context.Background())
		go func() {
			<-arrived
			stop(cause)
		}()
		expectKind(ctx, t, client, provider.Timeout)
	}
}

// cancel proves that any other cancel gives kind Canceled, with a cause of the caller's or without
// one. It comes while the server works on the call.
func cancel(t *testing.T, newClient func(string) Doer) {
	for _, cause := range []error{nil, errors.New("the user went home")} {
		arrived := make(chan struct{}, 1)
		client := hangingClient(t, newClient, arrived)
		ctx, stop := context.WithCancelCause(context.Background())
		go func() {
			<-arrived
			stop(cause)
		}()
		expectKind(ctx, t, client, provider.Canceled)
	}
}

// expectKind makes a call and checks the kind of its error. The record must show no answer.
func expectKind(ctx context.Context, t *testing.T, client Doer, want provider.Kind) {
	t.Helper()
	e, record := ask(ctx, t, client)
	if e == nil || e.Kind != want {
		t.Errorf("got %v, want kind %v", e, want)
	}
	if record.Status != 0 {
		t.Errorf("recorded status %d of an answer that never came", record.Status)
	}
}

// refusedConnection proves that a connection that nobody accepts is a transport fault.
func refusedConnection(t *testing.T, newClient func(string) Doer) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + listener.Addr().String()
	_ = listener.Close()
	client := clientFor(t, newClient, nobody)
	expectKind(context.Background(), t, client, provider.TransportFault)
}

// badCertificate proves that a certificate that does not verify is a misconfiguration.
func badCertificate(t *testing.T, newClient func(string) Doer) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it would print the handshake that is refused
	server.StartTLS()
	t.Cleanup(server.Close)
	client := clientFor(t, newClient, server.URL)
	expectKind(context.Background(), t, client, provider.Misconfigured)
}
