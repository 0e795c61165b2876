package converse

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/headrace/headrace/provider/rawjson"
	"github.com/headrace/headrace/provider/stream"
)

// frames splits a stream of type application/vnd.amazon.eventstream. A message is, with all
// numbers big-endian:
//
//	length │ length of headers │ CRC of both │ headers │ payload │ CRC of all before
//	  4              4               4                                    4
type frames struct{ held []byte }

// Lengths in bytes. AWS bounds a message to 16 MiB.
const (
	preludeSize = 8
	crcSize     = 4
	maxFrame    = 16 << 20
)

// Errors of bytes that are not a message.
var (
	errLength  = errors.New("a message of the event stream has an impossible length")
	errCRC     = errors.New("a checksum of the event stream is wrong")
	errHeaders = errors.New("the headers of a message of the event stream cannot be read")
)

// Write takes the next bytes. The length of a message is believed once its checksum is right.
func (f *frames) Write(p []byte, take func(stream.Event) error) error {
	f.held = append(f.held, p...)
	rest := f.held
	for {
		frame, err := first(rest)
		if err != nil {
			return err
		}
		if frame == nil {
			break
		}
		e, is, err := eventOf(frame)
		if err != nil {
			return err
		}
		if is {
			if err := take(e); err != nil {
				return err
			}
		}
		rest = rest[len(frame):]
	}
	if len(rest) < len(f.held) {
		f.held = f.held[:copy(f.held, rest)]
	}
	return nil
}

// first returns the first message in the bytes, nil if it is not whole.
func first(b []byte) ([]byte, error) {
	if len(b) < preludeSize+crcSize {
		return nil, nil
	}
	total, headers := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	switch {
	case crc32.ChecksumIEEE(b[:preludeSize]) != binary.BigEndian.Uint32(b[preludeSize:]):
		return nil, errCRC
	case total > maxFrame || uint64(total) < preludeSize+crcSize+uint64(headers)+crcSize:
		return nil, errLength
	case len(b) < int(total):
		return nil, nil
	}
	body := b[:total-crcSize]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(b[total-crcSize:]) {
		return nil, errCRC
	}
	return b[:total], nil
}

// eventOf returns the event of a whole message: the one that a header names, or an error. A
// message of another kind is not an event.
func eventOf(frame []byte) (e stream.Event, is bool, err error) {
	start := uint32(preludeSize + crcSize)
	end := start + binary.BigEndian.Uint32(frame[4:])
	kind, name, message := "event", []byte(nil), []byte(nil)
	for headers := frame[start:end]; len(headers) > 0; {
		var key, value []byte
		if key, value, headers, err = header(headers); err != nil {
			return e, false, err
		}
		switch string(key) {
		case ":message-type":
			kind = string(value)
		case ":event-type", ":exception-type", ":error-code":
			name = value
		case ":error-message":
			message = value
		}
	}
	e = stream.Event{Name: name, Data: frame[end : len(frame)-crcSize], Fault: kind != "event"}
	if kind == "error" {
		e.Data = append(rawjson.AppendString([]byte(`{"message":`), string(message)), '}')
	}
	return e, kind == "event" || kind == "exception" || kind == "error", nil
}

// header reads the first header: its name, its type, and a value of that type.
func header(b []byte) (name, value, rest []byte, err error) {
	n := int(b[0])
	if len(b) < 1+n+1 {
		return nil, nil, nil, errHeaders
	}
	name, kind, rest := b[1:1+n], b[1+n], b[2+n:]
	var size int
	switch kind {
	case 0, 1: // true and false
	case 2:
		size = 1
	case 3:
		size = 2
	case 4:
		size = 4
	case 5, 8: // a long number, a time
		size = 8
	case 9: // a UUID
		size = 16
	case 6, 7: // bytes, a text
		if len(rest) < 2 {
			return nil, nil, nil, errHeaders
		}
		size, rest = int(binary.BigEndian.Uint16(rest)), rest[2:]
	default:
		return nil, nil, nil, errHeaders
	}
	if len(rest) < size {
		return nil, nil, nil, errHeaders
	}
	return name, rest[:size], rest[size:], nil
}

// Close has nothing to do: a part of a message is no message, so the answer lacks its end.
func (f *frames) Close(func(stream.Event) error) error { return nil }

// Held returns the number of bytes kept of a message that is not whole.
func (f *frames) Held() int { return len(f.held) }
