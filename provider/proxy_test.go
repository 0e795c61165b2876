package provider_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
)

// through makes a call to a host of https by way of a proxy, and gives its error.
func through(t *testing.T, proxy string) error {
	t.Helper()
	u, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	tr := provider.NewHTTPTransport(1)
	defer tr.CloseIdleConnections()
	tr.Proxy = http.ProxyURL(u)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.invalid/v1", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err == nil {
		_ = resp.Body.Close()
		t.Fatal("it was answered")
	}
	return err
}

// What a proxy refuses is not taken for the provider's word, and never reached it. One
// that wants a password is a matter of configuration.
func TestProxyThatRefusesIsNamed(t *testing.T) {
	for status, kind := range map[int]provider.Kind{
		403: provider.TransportFault, 502: provider.TransportFault, 407: provider.Misconfigured,
	} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		defer proxy.Close()
		err := through(t, proxy.URL)
		host := strings.TrimPrefix(proxy.URL, "http://")
		if e := provider.ClassifyErr(err); e.Kind != kind || e.Status != 0 || !strings.Contains(err.Error(), fmt.Sprintf("the proxy at %s answers %d", host, status)) {
			t.Errorf("%d: %v, kind %v", status, err, e.Kind)
		}
		if !provider.Unsent(err) {
			t.Errorf("%d: it is taken for sent", status)
		}
	}
}

// So it is with one that is not there.
func TestProxyThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	err = through(t, "http://"+address)
	if e := provider.ClassifyErr(err); e.Kind != provider.TransportFault || !provider.Unsent(err) || !strings.Contains(err.Error(), "proxyconnect") {
		t.Errorf("%v, kind %v, unsent %v", err, e.Kind, provider.Unsent(err))
	}
}
