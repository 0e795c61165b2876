package serve

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	handler "github.com/headrace/headrace/batch/serve"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
)

const long = `Serve the provider's own paths on this machine. Programs in any language set one address and one
key, which the first lines show, and change nothing else:

  export OPENAI_BASE_URL=http://127.0.0.1:8470/v1
  export OPENAI_API_KEY=hr-…

Their calls wait in one line instead of being refused: they share one limit with each other, and with
headrace run --through. Bodies and answers pass byte for byte, streams as they come. The provider's
key stays here, and no program needs it.

A request may say how long it waits, and how urgent it is, in headers: X-Headrace-Priority
(interactive, normal or batch), X-Headrace-Max-Wait (30s), X-Headrace-Deadline (2m). Without them, it
waits for as long as its SDK does, and at most --max-wait. docs/serve.md has a page for Python, Node,
LangChain, litellm and curl.

The lanes are those of headrace run: the flags of one provider, or lanes: in the file of --config.

Without --clients there is one token, kept in a file that only you can read. --clients FILE names
clients, each with a token of its own, a weight, and bounds; headrace serve token makes tokens.
SIGHUP reads it again, with --config and the certificate; a terminal that is closed ends the server.

SIGTERM or Ctrl-C ends it: waiting requests are refused with Retry-After (--drain-waiting lets them go
on), calls in flight finish within --drain. A second one ends it at once.

Exit codes:
  0    it was ended by a signal
  2    flags or files are wrong, or the address cannot be had`

// flags are those of serve that run does not have.
type flags struct {
	addr, socket         string
	clients, tokenFile   string
	state                string
	tlsCert, tlsKey      string
	isOpen, insecure     bool
	hosts, origins       []string
	maxWait, commitAfter time.Duration
	maxWaiting           int
	maxBody, maxBodies   int // MiB
	onDisconnect         string
	drain                time.Duration
	drainWaiting         bool
	injectUsage          bool
}

// ofRun are the flags of run that the command has.
var ofRun = []string{
	"provider", "base-url", "api-key-env", "api-key-file", "region", "project", "location", "resource", "preset", "sim-profile",
	"header", "ca-file", "client-cert", "client-key",
	"max-cost", "price", "prices", "concurrency", "rpm", "tpm", "input-tpm", "output-tpm", "burst", "latency-target", "law", "max-attempts", "timeout", "stream-idle",
	"progress", "color", "ctl", "log-level", "log-format", "log-file", "config", "print-config", "seed", "metrics-addr",
}

// Values of --on-disconnect.
const (
	cancelGone = "cancel"
	finishGone = "finish"
)

// defaultDrain is as long as most supervisors wait for a process that they end.
const defaultDrain = time.Minute

func (f *flags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.addr, "addr", "127.0.0.1:8470", "address to serve at; one that other machines can reach needs --clients and TLS")
	fs.StringVar(&f.socket, "socket", "", "serve at a unix socket instead, for your own processes only")
	fs.StringVar(&f.clients, "clients", "", "YAML file of clients, their tokens and bounds (docs/serve.md); without it, there is one token")
	fs.StringVar(&f.tokenFile, "token-file", "", "file of the one token, which is made if there is none (default: in the folder of this user's processes, by address)")
	fs.BoolVar(&f.isOpen, "open", false, "let in requests without a token, on loopback or a --socket only")
	fs.StringVar(&f.state, "state", "", "keep what is learned of the limits in this file: after a restart nothing is searched again; headrace report takes its name")
	fs.StringVar(&f.tlsCert, "tls-cert", "", "certificate of this server, in PEM")
	fs.StringVar(&f.tlsKey, "tls-key", "", "key of --tls-cert, in PEM")
	fs.BoolVar(&f.insecure, "insecure-http", false, "let tokens and prompts cross the network unencrypted")
	fs.StringSliceVar(&f.hosts, "host", nil, "name by which clients call this server, besides localhost; several with commas")
	fs.StringSliceVar(&f.origins, "allow-origin", nil, "page in a browser that may call, such as https://app.example; several with commas")
	fs.DurationVar(&f.maxWait, "max-wait", handler.DefaultMaxWait, "longest wait of a request that names none, until its call leaves")
	fs.IntVar(&f.maxWaiting, "max-waiting", handler.DefaultMaxWaiting, "requests that may wait; one client may have half of them")
	fs.IntVar(&f.maxBody, "max-body", handler.DefaultMaxBody/settings.Mebibyte, "MiB of the largest request")
	fs.IntVar(&f.maxBodies, "max-bodies", handler.DefaultMaxBodies/settings.Mebibyte, "MiB of all requests together")
	fs.DurationVar(&f.commitAfter, "commit-after", handler.DefaultCommitAfter, "a stream that waits longer gets its head, and a line every 10 s that says how long it will take")
	fs.BoolVar(&f.injectUsage, "inject-usage", false, "ask OpenAI's streams for their usage, which is exact then, and take it out for clients that have not asked for it")
	fs.StringVar(&f.onDisconnect, "on-disconnect", cancelGone, "a call whose client has gone: cancel it, or let it finish")
	fs.DurationVar(&f.drain, "drain", defaultDrain, "time for calls in flight to finish at the end")
	fs.BoolVar(&f.drainWaiting, "drain-waiting", false, "at the end, let waiting requests go on as well, within --drain")
	settings.NameValues(fs, map[string]string{
		"addr": "HOST:PORT", "socket": "PATH", "clients": "FILE", "token-file": "FILE", "state": "FILE", "tls-cert": "FILE", "tls-key": "FILE",
		"host": "NAME", "allow-origin": "ORIGIN", "max-wait": "D", "max-waiting": "N", "max-body": "N", "max-bodies": "N", "commit-after": "D",
		"on-disconnect": "WHAT", "drain": "D",
	})
}

// addTo adds all flags of the command to a set, its own first. The file of --config may set any of them.
func (f *flags) addTo(fs *pflag.FlagSet, of *settings.Flags) {
	of.Own = pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.register(of.Own)
	fs.AddFlagSet(of.Own)
	all := pflag.NewFlagSet("run", pflag.ContinueOnError)
	of.Register(all)
	for _, name := range ofRun {
		fs.AddFlag(all.Lookup(name))
	}
}

// fixedOfRun are the flags of run that hold until the server ends, as those of its own do.
var fixedOfRun = []string{"max-cost", "concurrency", "timeout", "stream-idle", "progress", "color", "ctl", "log-level", "log-format", "log-file", "seed", "metrics-addr"}

// fixedFlags returns the values of the flags that SIGHUP does not change.
func fixedFlags(fs *pflag.FlagSet) map[string]string {
	values := map[string]string{}
	for _, name := range slices.Concat(settings.OfServe, []string{"insecure-http", "max-bodies"}, fixedOfRun) {
		values[name] = fs.Lookup(name).Value.String()
	}
	return values
}

// check returns an error for values and combinations of flags that are wrong, whatever the files hold.
func (f *flags) check(fs *pflag.FlagSet) error {
	var faults []error
	fault := func(is bool, text string) {
		if is {
			faults = append(faults, fmt.Errorf("%s", text))
		}
	}
	fault(f.socket != "" && fs.Changed("addr"), "--addr and --socket: serve at one of the two")
	fault(f.clients != "" && f.isOpen, "--open lets anybody in, and --clients names them: remove one of the two")
	fault(f.tokenFile != "" && (f.clients != "" || f.isOpen), "--token-file: it holds the one token, which is not used with --clients or --open: remove it")
	fault((f.tlsCert == "") != (f.tlsKey == ""), "--tls-cert and --tls-key belong together: give both")
	fault(f.tlsCert != "" && f.socket != "", "--tls-cert: nothing leaves this machine with --socket: remove it")
	return settings.Usage(append(faults,
		settings.OneOf("on-disconnect", f.onDisconnect, cancelGone, finishGone),
		settings.AtLeast("max-wait", f.maxWait, time.Second),
		settings.AtLeast("max-waiting", f.maxWaiting, 1),
		settings.AtLeast("max-body", f.maxBody, 1),
		settings.AtLeast("max-bodies", f.maxBodies, f.maxBody),
		settings.AtLeast("commit-after", f.commitAfter, time.Second),
		settings.AtLeast("drain", f.drain, 0),
	)...)
}

// Command makes headrace serve. With --join it calls under the limits of a cluster; nil: this build has none.
func Command(w *world.World, cluster Cluster) *cobra.Command {
	own, of := &flags{}, &settings.Flags{ManyLanes: true}
	cmd := &cobra.Command{
		Use:   "serve [flags]",
		Short: "Let programs in any language wait in one line instead of being refused",
		Long:  long,
		Example: `  headrace serve --provider sim
  headrace serve --rpm 500 --state serve.state.json
  headrace serve --provider anthropic --socket ~/headrace.sock
  headrace serve --config lanes.yaml --addr 10.0.0.5:8470 --clients clients.yaml --tls-cert cert.pem --tls-key key.pem`,
		Args: settings.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := &server{World: w, own: own, givenFlags: givenFlags(cmd.Flags())}
			if err := of.Complete(cmd.Flags(), w.Env); err != nil {
				return err
			}
			if err := own.check(cmd.Flags()); err != nil {
				return err
			}
			if of.PrintConfig {
				return of.WriteConfig(w.Stdout, cmd.Flags())
			}
			s.fixedValues = fixedFlags(cmd.Flags())
			joins, err := own.joinsCluster(cmd.Flags(), cluster, of)
			if err != nil {
				return err
			}
			if joins {
				s.cluster = cluster
			}
			return s.serve(cmd.Context(), of)
		},
	}
	cmd.Flags().SortFlags = false
	own.addTo(cmd.Flags(), of)
	registerJoin(cmd.Flags(), cluster)
	cmd.Flags().Lookup("print-config").Usage = "serve nothing: print the settings that hold, and where each comes from, as a file for --config; no secret is shown"
	cmd.Flags().Lookup("max-cost").Usage = "never spend more, in USD, from the start on: the prices of calls in flight are reserved, and what does not fit gets status 402"
	settings.CompleteWords(cmd, "on-disconnect", cancelGone, finishGone)
	settings.CompleteValues(cmd)
	cmd.Flags().Lookup("metrics-addr").Usage = "show the server at this address, without a token, as in 127.0.0.1:9500 (without a host, this machine only): / is a page with plots, and /metrics is for Prometheus"
	settings.GroupFlags(cmd, settings.RunGroups)
	cmd.AddCommand(tokenCommand(w))
	return cmd
}

// tokenCommand makes headrace serve token.
func tokenCommand(w *world.World) *cobra.Command {
	return &cobra.Command{
		Use:   "token [NAME]",
		Short: "Make a token, and its words for the file of --clients",
		Long: `Make a token for a client, and print its words for the file of --clients. Nothing is written to a file:
the token is shown once.`,
		Example: "  headrace serve token alice >> clients.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			name := cmp.Or(append(args, "alice")[0], "alice")
			token := newToken()
			fmt.Fprintf(w.Stdout, "  %s:\n    token-sha256: %x\n", name, tokenHash(token))
			fmt.Fprintf(exit.ForPeople(w.Stderr), "headrace: the token of %s, which is shown once: %s\n", name, token)
			return nil
		},
	}
}

// givenFlags returns the flags on the command line, as SIGHUP sets them again.
func givenFlags(fs *pflag.FlagSet) (all [][2]string) {
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			all = append(all, [2]string{f.Name, settings.TextOfValue(f.Value)})
		}
	})
	return all
}
