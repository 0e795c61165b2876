package simulator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/provider/all"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/sim"
	simface "github.com/headrace/headrace/provider/sim/face"
	"github.com/headrace/headrace/provider/sim/openai"
)

// Command makes headrace sim.
func Command(w *world.World) *cobra.Command {
	flags := &SimFlags{}
	cmd := &cobra.Command{
		Use:   "sim [flags]",
		Short: "Serve the simulated provider over HTTP, in the dialect of OpenAI or another",
		Long: `Serve a provider that is simulated: rate limits, refusals, latency and faults are as the
flags say, answers are made up from the prompt. It listens on this machine only.

GET /sim/books shows what it has counted, with ?ids by request and with ?bodies by the
SHA-256 of each body received; Ctrl-C ends it and prints that.

With --dialect it looks like another provider: its addresses (azure has both forms), what it
demands of a request, its errors, headers and usage. Any key will do, but all except OpenAI's
demand one. It says how headrace run calls it.

A request for a stream gets one, in pieces over the latency. A truncated stream breaks off in
its middle, stream-error puts an error there, and after stream-silent nothing more comes.`,
		Example: `  headrace sim
  headrace sim --addr 127.0.0.1:0 --rpm 6000 --burst 2s --latency 100ms --retry-after always
  headrace sim --profile fast --errors 500=0.1,reset=0.02 --outage 10s+5s:503
  headrace sim --dialect anthropic --rpm 600 --headers --retry-after always`,
		Args: settings.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := flags.Config(cmd.Flags())
			if err != nil {
				return err
			}
			cfg.TrackBodies = true // so that the books contain what was sent
			return serve(cmd.Context(), w, flags.addr, cfg)
		},
	}
	flags.Register(cmd.Flags())
	settings.CompleteWords(cmd, "dialect", SimDialects()...)
	settings.CompleteWords(cmd, "retry-after", slices.Sorted(maps.Values(modeWords))...)
	settings.CompleteValues(cmd)
	return cmd
}

// serve runs the simulated provider until a signal ends it, and then prints its books.
func serve(ctx context.Context, w *world.World, addr string, cfg sim.Config) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-w.Signals:
			w.Release() // a second one does not wait for calls to end
			stop()
		case <-ctx.Done():
		}
	}()
	server := sim.New(cfg, w.Clock)
	err := sim.Serve(ctx, addr, server, sim.OnReady(func(a net.Addr) { sayServing(w, a, cfg) }))
	stop()
	<-over
	if err != nil {
		return simFault(addr, err)
	}
	fmt.Fprint(w.Stderr, booksText(server.Books()))
	return nil
}

// simFault returns an ending that says why the simulator cannot listen, and what to do. It unwraps net's errors, as
// they repeat the address.
func simFault(addr string, err error) error {
	if errors.Is(err, sim.ErrPublic) {
		return exit.Refuse("%s: the simulator listens on this machine only: use --addr 127.0.0.1:PORT", exit.PlainText(err))
	}
	var (
		op *net.OpError
		at *net.AddrError
	)
	switch { // each repeats the address
	case errors.As(err, &at):
		err = fmt.Errorf("listen on %s: %s", addr, at.Err)
	case errors.As(err, &op):
		err = fmt.Errorf("listen on %s: %w", addr, op.Err)
	}
	return exit.Refuse("%s: name another with --addr, or any free port with --addr 127.0.0.1:0", exit.PlainText(err))
}

// sayServing says what is served and how to use it. The address stands alone on its line,
// for scripts.
func sayServing(w *world.World, a net.Addr, cfg sim.Config) {
	fmt.Fprintf(w.Stderr, "headrace: simulated provider, answers are made up: %s\n", simWords(cfg))
	base := "http://" + a.String() + SimBase(cfg)
	fmt.Fprintf(w.Stderr, "headrace: listening on %s\n", base)
	fmt.Fprintf(w.Stderr, "headrace: in another terminal: %sheadrace run prompts.jsonl -o results.jsonl %s--base-url %s --model sim-1\n", keyFor(cfg), providerFor(cfg), base)
}

// keyFor returns a shell's setting of the variable for a key, where the face demands one. Any key will do.
func keyFor(cfg sim.Config) string {
	v := vendorOf(cfg)
	if v.Name == "" {
		return ""
	}
	return v.Keys[0] + "=any-key "
}

// providerFor returns the flag for a face that is not OpenAI's.
func providerFor(cfg sim.Config) string {
	v := vendorOf(cfg)
	if v.Name == "" {
		return ""
	}
	return "--provider " + v.Name + " "
}

// simWords describes a configuration in a few words.
func simWords(c sim.Config) string {
	var list []string
	add := func(on bool, format string, args ...any) {
		if on {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	if c.Face != nil {
		add(true, "the dialect of %s", dialectOf(c.Face))
	}
	add(c.RPM > 0, "%g requests/min", c.RPM)
	add(c.TPM > 0, "%g tokens/min", c.TPM)
	add(c.RPM == 0 && c.TPM == 0, "no rate limit")
	add(c.Window > 0, "in windows of %v", c.Window)
	add(c.Window == 0 && c.Burst > 0 && c.RPM+c.TPM > 0, "burst %v", c.Burst)
	add(c.Latency.Median > 0, "latency %v (sigma %g)", c.Latency.Median, c.Latency.Sigma)
	add(c.RetryAfter != sim.Never, "retry-after %s", modeWords[c.RetryAfter])
	add(c.Headers, "rate-limit headers")
	add(c.Errors != sim.Rates{}, "faults")
	add(len(c.Outages) > 0, "%s", words.Count(len(c.Outages), "outage"))
	add(c.QuotaAfter > 0, "quota used up after %d answers", c.QuotaAfter)
	return strings.Join(list, ", ")
}

// booksText returns the simulator's counts as a table, for the end of a session.
func booksText(b sim.Books) string {
	var s strings.Builder
	row := func(name string, value any) { fmt.Fprintf(&s, "  %-20s %v\n", name, value) }
	s.WriteString("\nbooks\n")
	row("received", b.Received)
	row("accepted", b.Accepted)
	row("refused (429)", b.Refused429)
	for _, kind := range slices.Sorted(maps.Keys(b.Errors)) {
		row(string(kind), b.Errors[kind])
	}
	row("abandoned", b.Abandoned)
	row("distinct requests", b.Distinct)
	row("answered repeatedly", countRepeated(b))
	return s.String()
}

// countRepeated returns the number of requests that were answered more than once.
func countRepeated(b sim.Books) int {
	n := 0
	for _, answers := range b.Answered {
		if answers > 1 {
			n++
		}
	}
	return n
}

// dialectAzure is OpenAI's dialect at Azure's addresses.
const dialectAzure = "azure"

// SimDialects lists the values of --dialect.
func SimDialects() []string {
	var names []string
	for _, e := range all.All() {
		names = append(names, e.Dialect.Name())
	}
	return slices.Insert(names, 1, dialectAzure) // after OpenAI's
}

// simDialectList lists all of them, in words.
func simDialectList() string {
	names := SimDialects()
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// setFace sets the face of a dialect. For OpenAI's it sets nil, as that is the provider's own.
func setFace(to *simface.Face, dialect string) error {
	if dialect == dialectAzure {
		*to = openai.Azure{}
		return nil
	}
	entry, known := all.Named(dialect)
	if !known {
		return exit.Refuse("--dialect: %q is not known: use %s", dialect, simDialectList())
	}
	if *to = entry.Face; dialect == settings.ProviderOpenAI {
		*to = nil
	}
	return nil
}

// vendorOf returns the vendor that the simulated provider looks like, by the dialect or name of its face; the zero
// vendor for OpenAI.
func vendorOf(c sim.Config) (v catalog.Vendor) {
	if c.Face == nil {
		return v
	}
	name := dialectOf(c.Face)
	rows := catalog.Rows()
	i := slices.IndexFunc(rows, func(v catalog.Vendor) bool { return v.Dialect.Name() == name })
	if i < 0 {
		i = slices.IndexFunc(rows, func(v catalog.Vendor) bool { return v.Name == name })
	}
	return rows[i]
}

// dialectOf returns the word of --dialect for a face.
func dialectOf(f simface.Face) string {
	if _, is := f.(openai.Azure); is {
		return dialectAzure
	}
	return f.Name()
}

// SimBase returns the path below which clients of a configuration's face look.
func SimBase(c sim.Config) string {
	if c.Face == nil {
		return openai.Face{}.Base()
	}
	return c.Face.Base()
}
