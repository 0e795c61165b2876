package simtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/sim/face"
)

// Epoch is the time at which New's clock stands.
var Epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// New makes a provider with that face.
func New(cfg sim.Config, f face.Face) *sim.Server {
	cfg.Face = f
	return sim.New(cfg, clockwork.NewFakeClockAt(Epoch))
}

// Answer is the provider's answer. Body has no type if it is not JSON; for a stream it lists the
// data of the events.
type Answer struct {
	Status int
	Header http.Header
	Body   gjson.Result
	Text   string // the body as it came
}

// Ask sends a POST. The headers are names and values in turn: of two of a name the later
// counts.
func Ask(t *testing.T, s *sim.Server, path, body string, header ...string) Answer {
	t.Helper()
	return Send(t, s, http.MethodPost, path, body, header...)
}

// Send is Ask with another method.
func Send(t *testing.T, s *sim.Server, method, path, body string, header ...string) Answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://sim"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := sim.NewTransport(s).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it was read
	if err != nil {
		t.Fatal(err)
	}
	list, err := asJSON(resp.Header.Get("Content-Type"), text)
	if err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return Answer{resp.StatusCode, resp.Header, gjson.Parse(list), string(text)}
}

// asJSON returns a body as JSON. For a stream that is the list of its events' data, in order,
// without OpenAI's end mark. In AWS's form each stands below the name of its event.
func asJSON(contentType string, body []byte) (string, error) {
	var events []string
	switch contentType, _, _ = strings.Cut(contentType, ";"); contentType {
	case "text/event-stream":
		for line := range strings.Lines(string(body)) {
			if data, found := strings.CutPrefix(line, "data: "); found && strings.TrimSpace(data) != "[DONE]" {
				events = append(events, data)
			}
		}
	case "application/vnd.amazon.eventstream":
		for len(body) > 0 {
			event, rest, err := frame(body)
			if err != nil {
				return "", err
			}
			events, body = append(events, event), rest
		}
	default:
		return string(body), nil
	}
	return "[" + strings.Join(events, ",") + "]", nil
}

var errFrame = errors.New("a frame has wrong lengths, checksums or headers")

// frame reads one frame of AWS's: two lengths and their checksum, headers, payload, checksum of
// all that.
func frame(b []byte) (event string, rest []byte, err error) {
	const prelude, check = 12, 4
	if len(b) < prelude+check {
		return "", nil, errFrame
	}
	total, headers := int(binary.BigEndian.Uint32(b)), int(binary.BigEndian.Uint32(b[4:]))
	if total > len(b) || headers > total-prelude-check ||
		crc32.ChecksumIEEE(b[:prelude-check]) != binary.BigEndian.Uint32(b[prelude-check:]) ||
		crc32.ChecksumIEEE(b[:total-check]) != binary.BigEndian.Uint32(b[total-check:]) {
		return "", nil, errFrame
	}
	names, err := frameHeaders(b[prelude : prelude+headers])
	name := names[":event-type"] + names[":exception-type"]
	if err != nil || names[":content-type"] != "application/json" || (names[":message-type"] == "event") != (names[":exception-type"] == "") {
		return "", nil, fmt.Errorf("%w: %v", errFrame, names)
	}
	return fmt.Sprintf(`{%q:%s}`, name, b[prelude+headers:total-check]), b[total:], nil
}

// frameHeaders reads headers with strings for values, which have the type 7.
func frameHeaders(b []byte) (map[string]string, error) {
	headers := map[string]string{}
	for len(b) > 0 {
		n := int(b[0]) + 1
		if len(b) < n+3 || b[n] != 7 {
			return headers, errFrame
		}
		end := n + 3 + int(binary.BigEndian.Uint16(b[n+1:]))
		if len(b) < end {
			return headers, errFrame
		}
		headers[string(b[1:n])] = string(b[n+3 : end])
		b = b[end:]
	}
	return headers, nil
}
