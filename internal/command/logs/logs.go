// Package logs opens the log that the flags of a command describe.
//
// It promises that a line steers no terminal, even when it is read later. Without --log-file its lines go
// to the console of the command.
//
//	flags ─ Open ─▶ *slog.Logger ─▶ --log-file, or console
package logs

import (
	"io"
	"log/slog"
	"os"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/disk"
)

// Open opens the log, and returns the function that closes it. Each line of a file has the attributes inFile, as
// several processes may write to it.
func Open(f *settings.Flags, console io.Writer, inFile ...any) (log *slog.Logger, closed func(), err error) {
	if f.LogFile == "" {
		return slog.New(Handler(f, console)), func() {}, nil
	}
	file, err := os.OpenFile(f.LogFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, exit.Refuse("--log-file: %s: %v: choose another, or check the permissions", f.LogFile, disk.Bare(err))
	}
	return slog.New(Handler(f, writer{file, f.LogsJSON()})).With(inFile...), func() { _ = file.Close() }, nil // a log that cannot be written is lost
}

// writer writes lines of a log that steer no terminal, even when they are read later.
type writer struct {
	out  io.Writer
	json bool
}

// Write writes one whole line, made harmless to terminals.
func (w writer) Write(line []byte) (int, error) {
	if !w.json {
		return printable.Writer{Out: w.out}.Write(line)
	}
	if _, err := w.out.Write(printable.JSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// Handler returns the handler that formats the log.
func Handler(f *settings.Flags, to io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: f.Leveler()}
	if f.LogsJSON() {
		return slog.NewJSONHandler(to, options)
	}
	return slog.NewTextHandler(to, options)
}
