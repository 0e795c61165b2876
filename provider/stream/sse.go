package stream

import "bytes"

// SSE splits server-sent events by the HTML standard. Its zero value is ready.
type SSE struct {
	line  []byte // the beginning of a line that has not ended
	name  []byte
	data  []byte
	some  bool // the event has data, which may be empty
	cr    bool // the last line ended with a carriage return: a line feed belongs to it
	begun bool // the first line was read: from here on a byte order mark is text
}

// Write takes the next bytes.
func (s *SSE) Write(p []byte, take func(Event) error) error {
	for len(p) > 0 {
		if s.cr {
			if s.cr = false; p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		end := lineEnd(p)
		if end < 0 {
			s.line = append(s.line, p...)
			return nil
		}
		line := p[:end]
		s.cr = p[end] == '\r'
		p = p[end+1:]
		if len(s.line) > 0 {
			s.line = append(s.line, line...)
			line, s.line = s.line, s.line[:0]
		}
		if err := s.read(line, take); err != nil {
			return err
		}
	}
	return nil
}

// lineEnd returns the index at which the first line ends, -1 if it does not.
func lineEnd(p []byte) int {
	feed := bytes.IndexByte(p, '\n')
	line := p
	if feed >= 0 {
		line = p[:feed]
	}
	if carriage := bytes.IndexByte(line, '\r'); carriage >= 0 {
		return carriage
	}
	return feed
}

// Close takes the last line and the last event, which some servers do not end.
func (s *SSE) Close(take func(Event) error) error {
	line := s.line
	s.line = nil
	if err := s.read(line, take); err != nil || len(line) == 0 {
		return err
	}
	return s.dispatch(take)
}

// Held counts the line and the data.
func (s *SSE) Held() int { return len(s.line) + len(s.data) + len(s.name) }

var (
	byteOrder = []byte("\xef\xbb\xbf")
	dataField = []byte("data")
	nameField = []byte("event")
)

// read reads one line. It ignores comments and unknown fields.
func (s *SSE) read(line []byte, take func(Event) error) error {
	if !s.begun {
		s.begun = true
		line = bytes.TrimPrefix(line, byteOrder)
	}
	if len(line) == 0 {
		return s.dispatch(take)
	}
	field, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch {
	case bytes.Equal(field, dataField):
		if s.some {
			s.data = append(s.data, '\n')
		}
		s.data, s.some = append(s.data, value...), true
	case bytes.Equal(field, nameField):
		s.name = append(s.name[:0], value...)
	}
	return nil
}

func (s *SSE) dispatch(take func(Event) error) (err error) {
	if s.some {
		err = take(Event{Name: s.name, Data: s.data})
	}
	s.name, s.data, s.some = s.name[:0], s.data[:0], false
	return err
}
