package stream

import (
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/stream"
)

// A tap finds usage and end in the streams of each dialect, in whatever pieces they come, and knows when
// it stands between two events.
func TestTap(t *testing.T) {
	picture := `data: {"picture":"` + strings.Repeat("x", maxKept) + `"}` + "\n\n"
	for name, test := range map[string]struct {
		text, finish string
		usage        provider.Usage
	}{
		"chat":           {"data: {\"choices\":[{\"finish_reason\":null}]}\n\ndata: {\"choices\":[{\"finish_reason\":\"length\"}],\"usage\":null}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n", "length", provider.Usage{InputTokens: 9, OutputTokens: 2}},
		"messages":       {"event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\r\n\r\nevent: message_delta\r\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":7}}\r\n\r\n", "end_turn", provider.Usage{InputTokens: 9, OutputTokens: 7}},
		"gemini":         {"data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":3}}\r\n\r\n", "STOP", provider.Usage{InputTokens: 9, OutputTokens: 3}},
		"responses":      {"event: response.completed\ndata: {\"response\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":4}}}\n\n", "", provider.Usage{InputTokens: 9, OutputTokens: 4}},
		"after a long":   {picture + "data: {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\n", "", provider.Usage{InputTokens: 9, OutputTokens: 2}},
		"nothing at all": {": comment\n\ndata: {\"usage\":7}\n\ndata: \"usage\n\n", "", provider.Usage{}},
	} {
		for _, size := range []int{1, 3, 1 << 20} {
			tap := new(Tap)
			if !tap.Between() {
				t.Errorf("%s: the beginning is not between events", name)
			}
			for rest := test.text; rest != ""; {
				n := min(size, len(rest))
				tap.Write([]byte(rest[:n]))
				rest = rest[n:]
				at := test.text[:len(test.text)-len(rest)]
				if ends := strings.HasSuffix(at, "\n\n") || strings.HasSuffix(at, "\n\r\n"); tap.Between() != ends {
					t.Fatalf("%s: after %q: between %v", name, at[max(0, len(at)-40):], tap.Between())
				}
			}
			used, has := tap.Usage()
			if used != test.usage || has != (test.usage != provider.Usage{}) || tap.Finish() != test.finish {
				t.Errorf("%s in pieces of %d: %+v %v %q", name, size, used, has, tap.Finish())
			}
		}
	}
}

// An error that this server writes into a stream of frames is one that clients of AWS read; bytes that are
// no frames are passed over.
func TestTapOverFrames(t *testing.T) {
	splitter, assembler := converse.Dialect{}.Stream(provider.Converse)
	fault := converse.Dialect{}.Fault(provider.Converse, provider.Refusal{Status: 429, Code: "headrace_deadline", Message: "no \"time\""})
	if err := splitter.Write(fault, func(e stream.Event) error { _, err := assembler.Add(e); return err }); err != nil {
		t.Fatal(err)
	}
	_, err := assembler.Body()
	if err == nil || err.Error() != "an event told an error" || splitter.Buffered() != 0 {
		t.Errorf("%v, %d bytes held", err, splitter.Buffered())
	}
	splitter, _ = converse.Dialect{}.Stream(provider.Converse)
	tap := Over(splitter)
	tap.Write([]byte(strings.Repeat("no frame", 100)))
	tap.Write(fault)
	if _, has := tap.Usage(); has || tap.Between() {
		t.Error("it found something in what is nothing")
	}
}

// Of a stream without an end of any line no more is kept than was promised, in either form.
func TestTapKeepsLittle(t *testing.T) {
	tap, piece := new(Tap), []byte("data: "+strings.Repeat("x", 1000))
	for range 1000 {
		tap.Write(piece)
		if cap(tap.line) > 2*maxKept {
			t.Fatalf("%d bytes are kept", cap(tap.line))
		}
	}
	tap.Write([]byte("\n\ndata: {\"usage\":{\"prompt_tokens\":9}}\n\n"))
	if used, has := tap.Usage(); !has || used.InputTokens != 9 || !tap.Between() {
		t.Errorf("after the long line: %+v %v", used, has)
	}

	splitter, _ := converse.Dialect{}.Stream(provider.Converse)
	tap = Over(splitter)
	head := []byte{0, 15, 0, 0, 0, 0, 0, 0} // says that the frame is 960 KiB long
	frame := append(binary.BigEndian.AppendUint32(head, crc32.ChecksumIEEE(head)), piece...)
	for range 500 {
		tap.Write(frame)
		if kept := tap.splitter.Buffered(); kept > 2*maxKept {
			t.Fatalf("%d bytes of a frame are kept", kept)
		}
		frame = piece
	}
}
