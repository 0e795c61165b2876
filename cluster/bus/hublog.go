package bus

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
)

// A hubLog passes on the server's complaints, without the token, and nothing else. The server's
// goroutines call it.
type hubLog struct {
	say    func(error)
	secret string
	fatal  atomic.Pointer[string] // the latest error that made the server give up
}

// Noticef says nothing: success is no news.
func (l *hubLog) Noticef(string, ...any) {}

// Warnf says nothing, either. A server warns of slow consumers and lost routes, which our clients
// and their users notice by themselves.
func (l *hubLog) Warnf(string, ...any) {}

// Debugf says nothing.
func (l *hubLog) Debugf(string, ...any) {}

// Tracef says nothing.
func (l *hubLog) Tracef(string, ...any) {}

// Errorf passes the complaint on.
func (l *hubLog) Errorf(format string, v ...any) {
	l.tell(fmt.Errorf("bus: hub: %s", fmt.Sprintf(format, v...)))
}

// Fatalf passes the complaint on and records it; the process lives on.
func (l *hubLog) Fatalf(format string, v ...any) {
	text := l.hide(fmt.Sprintf(format, v...))
	l.fatal.Store(&text)
	l.tell(fmt.Errorf("bus: hub: %s", text))
}

func (l *hubLog) tell(err error) {
	if l.say != nil {
		l.say(l.redacted(err))
	}
}

// redacted returns err itself unless it names the token.
func (l *hubLog) redacted(err error) error {
	if text := err.Error(); l.secret != "" && strings.Contains(text, l.secret) {
		return errors.New(l.hide(text))
	}
	return err
}

func (l *hubLog) hide(text string) string {
	if l.secret == "" {
		return text
	}
	return strings.ReplaceAll(text, l.secret, "***")
}
