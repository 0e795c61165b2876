package wire

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/headrace/headrace/provider"
)

const chat = `{"choices":[{"finish_reason":"stop"}]}`

// A body of known length is read to its end, which may come by itself, and one that
// ends before is an error, with what there is.
func TestBodyIsReadToItsEnd(t *testing.T) {
	ended := false
	end := readerFunc(func([]byte) (int, error) { ended = true; return 0, io.EOF })
	body, err := readAll(io.MultiReader(iotest.OneByteReader(strings.NewReader(chat)), end), len(chat))
	if string(body) != chat || err != nil || !ended {
		t.Errorf("%s, %v; the end was seen: %t", body, err, ended)
	}
	body, err = readAll(strings.NewReader(chat), len(chat)+1)
	if string(body) != chat || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%s, %v", body, err)
	}
	broken := errors.New("broken")
	if _, err = readAll(io.MultiReader(strings.NewReader(chat), iotest.ErrReader(broken)), len(chat)+1); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// An answer that breaks off is no answer, not even where what came is whole JSON.
func TestAnswerCutAfterAValue(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, wire, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(wire, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"+chat)
		_ = wire.Flush()
		_ = conn.Close()
	}))
	t.Cleanup(server.Close)
	c, err := New(local(Config{BaseURL: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdle)
	_, err = c.Do(t.Context(), provider.Request{Endpoint: "/v1/chat/completions", Body: []byte(`{}`)})
	if !errors.Is(err, provider.TransportFault) {
		t.Errorf("%v", err)
	}
}

// A transport of the user's may unpack an answer and leave its length as it was.
func TestForeignLengthIsNotBelieved(t *testing.T) {
	c, err := New(local(Config{Transport: unpacked{}}))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := c.Do(t.Context(), provider.Request{Endpoint: "/v1/chat/completions", Body: []byte(`{}`)})
	if err != nil || string(reply.Body) != chat {
		t.Errorf("%s, %v", reply.Body, err)
	}
}

type unpacked struct{}

func (unpacked) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Request: req,
		Body: io.NopCloser(strings.NewReader(chat)), ContentLength: int64(len(chat)) - 9,
	}, nil
}
