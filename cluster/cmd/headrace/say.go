package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
)

// A notifier tells people what they should know.
type notifier interface {
	line(text string)
	error(err error)
	event(code event.Code, text string)
}

// A speaker prints lines for people, each by one write, so that goroutines do not mix them.
type speaker struct{ out io.Writer }

// speakerOf returns the speaker of a command; for nil it writes to standard error.
func speakerOf(cmd *cobra.Command) *speaker {
	if cmd == nil {
		return &speaker{os.Stderr}
	}
	return &speaker{cmd.ErrOrStderr()}
}

func (s *speaker) line(text string) { fmt.Fprintf(s.out, "headrace: %s\n", text) }

func (s *speaker) error(err error) { s.line(err.Error()) }

func (s *speaker) event(_ event.Code, text string) { s.line(text) }

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return exit.End(exit.Usage, "unexpected argument %q: %s takes none", args[0], cmd.CommandPath())
}
