package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
)

// A key of a gateway next to the provider's is in no answer, no error and no record of a call,
// wherever the server repeats it.
func TestSecretsOfOtherHeaders(t *testing.T) {
	const own, gateways = "sk-0123456789abcdef-own", "pk-0123456789abcdef-gateway"
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		came := r.Header.Get("X-Portkey-Api-Key")
		if came != gateways || r.Header.Get("Authorization") != "Bearer "+own {
			t.Errorf("%v", r.Header)
		}
		w.Header().Set("X-Request-Id", came)
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"choices":[{"message":{"content":"%s"},"finish_reason":"%s"}],"error":%s}`, came, came,
			map[int]string{200: "null", 400: `{"message":"` + came + `","code":"` + came + `"}`}[status])
	}))
	defer server.Close()
	first, err := auth.Bearer(own)
	if err != nil {
		t.Fatal(err)
	}
	second, err := auth.NewKey("x-portkey-api-key", "", gateways)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(local(Config{BaseURL: server.URL, Auth: auth.Join(first, second)}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseIdle()
	if c.asks {
		t.Error("two keys are asked for each request")
	}
	for _, status = range []int{http.StatusOK, http.StatusBadRequest} {
		ctx, rec := provider.WithRecorder(t.Context())
		reply, err := c.Do(ctx, chatRequest)
		record := rec.Snapshot()
		if text := fmt.Sprintf("%s %q %v %q %q %s", reply.Body, reply.RequestID, err, record.RequestID, record.Finish, record.ErrorBody); strings.Contains(text, gateways[:12]) || strings.Contains(fmt.Sprintf("%v %#v", c, c), "0123456789") {
			t.Errorf("%d: there is the key: %s", status, text)
		}
		if record.RequestID != "[redacted]" || (err == nil) != (status == http.StatusOK) {
			t.Errorf("%d: %+v, %v", status, record, err)
		}
	}
}

// The client's own transport trusts an authority that the configuration names, and speaks HTTP/2
// with it as with others.
func TestTLSOfTheConfiguration(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, `{"choices":[{"message":{"content":"%s"},"finish_reason":"stop"}]}`, r.Proto)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that fails
	server.StartTLS()
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	for trusted, cfg := range map[bool]*tls.Config{true: {RootCAs: pool, MinVersion: tls.VersionTLS12}, false: nil} {
		c, err := New(local(Config{BaseURL: server.URL, TLS: cfg}))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := c.Do(t.Context(), chatRequest)
		c.CloseIdle()
		if trusted && (err != nil || !strings.Contains(string(reply.Body), "HTTP/2.0")) || !trusted && !errors.Is(err, provider.Misconfigured) {
			t.Errorf("%v: %s, %v", trusted, reply.Body, err)
		}
	}
}
