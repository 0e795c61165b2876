package verdict

import (
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/wire"
)

// HintsFor returns a line for each flag that may have caused bad lines, or may help.
func HintsFor(bad []*prompts.LineError) (hints []string) {
	if i := slices.IndexFunc(bad, IsNoJSONL); i >= 0 {
		hints = append(hints, FormatHint(printable.Line(bad[i].File)))
	}
	if i := slices.IndexFunc(bad, isUTF16); i >= 0 {
		name := settings.ShellQuote(bad[i].File)
		hints = append(hints, "it seems to be UTF-16, as PowerShell's > writes it: iconv -f UTF-16 -t UTF-8 "+name+" makes UTF-8 of it")
	}
	if slices.ContainsFunc(bad, lacksBound) {
		hints = append(hints, "--max-tokens N sets max_tokens for chats that have none")
	}
	if slices.ContainsFunc(bad, func(e *prompts.LineError) bool { return errors.Is(e, prompts.ErrUntranslatable) }) {
		hints = append(hints, "--on-untranslatable skip leaves out lines that cannot be translated")
	}
	if slices.ContainsFunc(bad, func(e *prompts.LineError) bool { return e.Endpoint == prompts.Rerank }) {
		hints = append(hints, "if query and documents are data, a template makes prompts of them, as in --template '{{.query}}'")
	}
	return append(hints, otherVendors(bad)...)
}

// isUTF16 reports whether a first line has NUL bytes from its beginning on, as ASCII has in UTF-16.
func isUTF16(e *prompts.LineError) bool {
	return e.FileLine() == 1 && errors.Is(e, prompts.ErrText) && nulAtStart.MatchString(e.Reason)
}

// nulAtStart is the complaint about a NUL byte in the first character, with a byte order mark or without.
var nulAtStart = regexp.MustCompile(`^NUL byte at byte [1-4]$`)

// lacksBound reports whether a chat cannot be translated because its answer has no bound.
func lacksBound(e *prompts.LineError) bool {
	return errors.Is(e, prompts.ErrUntranslatable) && e.Field == "max_completion_tokens" && strings.Contains(e.Reason, "is missing")
}

// mostVendorsNamed is the largest number of providers that a hint names: most providers take
// chats.
const mostVendorsNamed = 6

// otherVendors names, for each endpoint that the provider does not have, the vendors whose
// dialect has it.
func otherVendors(bad []*prompts.LineError) (hints []string) {
	said := map[string]bool{}
	for _, e := range bad {
		vendors := vendorsFor(e.Endpoint)
		if said[e.Endpoint] || len(vendors) == 0 || len(vendors) > mostVendorsNamed {
			continue
		}
		said[e.Endpoint] = true
		hints = append(hints, "--provider "+strings.Join(vendors, " or ")+" takes lines for "+e.Endpoint)
	}
	return hints
}

// vendorsFor lists the vendors whose dialect has an endpoint as its first.
func vendorsFor(endpoint string) (names []string) {
	for _, v := range catalog.Rows() {
		if wire.Served(v.Dialect)[0] == endpoint {
			names = append(names, v.Name)
		}
	}
	return names
}

// FormatHint returns a hint that names how an input is read, and the flags that read it otherwise.
func FormatHint(input string) string {
	return input + " is read as JSONL, one object a line: --format text reads each line as a prompt, --format csv each row as an item"
}

// IsNoJSONL reports whether a file that is read as JSONL seems to be something else. Its first line is no JSON, and
// neither is its ending.
func IsNoJSONL(first *prompts.LineError) bool {
	name := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(first.File), ".gz"), ".zst")
	return first.FileLine() == 1 && errors.Is(first, prompts.ErrNotJSON) &&
		!slices.Contains([]string{".jsonl", ".ndjson", ".json"}, filepath.Ext(name))
}

// Scan reads an input to its end before anything else happens. A bad line ends the command, unless such lines are
// skipped. alter changes how the input is read.
func Scan(w *world.World, f *settings.InputFlags, src promptfile.Input, alter func(*prompts.Config), take func(prompts.Request)) (promptfile.Scanned, error) {
	cfg := f.ReaderConfig(src.Name)
	cfg.NoKeys = true
	alter(&cfg)
	found, err := promptfile.Scan(src, cfg, nil, take)
	switch {
	case errors.Is(err, promptfile.ErrInput):
		return found, settings.InputFault(src.Name, err)
	case err != nil:
		return found, exit.Refuse("%s", exit.PlainText(err))
	}
	if fatal := found.Fatal(f.SkipsBadLines(), f.SkipsUntranslatable()); fatal != nil {
		return found, (&Verdict{Facts: &Facts{World: w, Flags: &settings.Flags{InputFlags: *f}, Input: src.Name}}).BadLines(fatal)
	}
	return found, nil
}
