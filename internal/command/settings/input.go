package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/price"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/estimate"
	"github.com/headrace/headrace/provider/wire"
)

// InputFlags are the flags of every command that reads prompts: they say how to read a line,
// and for which provider. All such commands take and refuse the same values.
type InputFlags struct {
	VendorFlags
	model, endpoint  string
	Format, template string
	parsed           *template.Template // --template, nil for none
	system           string
	params           paramTexts
	parsedParams     []prompts.Param
	onBadLine        string
	onUntranslatable string
	limit            int
	ServiceTier      string // for lines that name none; "": the provider decides
}

// registerInput registers the flags about the input alone.
func (f *InputFlags) registerInput(fs *pflag.FlagSet, onBadLine string) {
	fs.StringVar(&f.model, "model", "", "model for lines that name none")
	fs.StringVar(&f.endpoint, "endpoint", prompts.ChatCompletions, "endpoint for lines that name none")
	fs.StringVar(&f.Format, "format", FormatAuto, "format of the input: jsonl, text (one prompt a line), csv (one item a row) or auto (csv if the name ends so, else jsonl)")
	fs.StringVar(&f.template, "template", "", "Go template that makes the prompt from an item's fields, such as \"Translate: {{.text}}\"")
	fs.Var(&f.params, "param", "parameter for lines that do not set it, such as max_tokens=50 or stop=END; repeatable (see headrace help input)")
	fs.StringVar(&f.onBadLine, "on-bad-line", badLineFail, onBadLine)
	fs.StringVar(&f.onUntranslatable, "on-untranslatable", badLineFail, "when a chat cannot be converted to the provider's API: fail (nothing is called), skip, or elsewhere (only lanes that take it as it is)")
	fs.StringVar(&f.system, "system", "", "system message for lines that are only a prompt")
	fs.IntVar(&f.limit, "limit", 0, "run only the first N items; 0: all")
	fs.StringVar(&f.ServiceTier, "service-tier", "", "tier of service for lines that name none, where the provider has tiers: flex (half the price, slower, and refused while there is no room), standard, or auto (flex, and standard while flex has had no room for --spill)")
	NameValues(fs, map[string]string{
		"model": "NAME", "endpoint": "PATH", "format": "NAME", "template": "TEXT", "on-bad-line": "MODE", "on-untranslatable": "MODE", "system": "TEXT", "limit": "N", "service-tier": "NAME",
	})
}

// ReaderConfig says how to read the input of that name.
func (f *InputFlags) ReaderConfig(name string) prompts.Config {
	return prompts.Config{
		DefaultModel: f.DefaultModel(), DefaultEndpoint: f.endpoint,
		System: f.system, Serves: f.Serves(), Takes: f.TakesLine(),
		Params: f.parsedParams, Format: f.FormatOf(name), Template: f.parsed, Limit: f.limit,
	}
}

// DefaultModel returns the model of lines that name none; "": there is none.
func (f *InputFlags) DefaultModel() string {
	if f.model == "" && f.Provider == ProviderSim {
		return SimDefaultModel
	}
	return f.model
}

// Serves lists the endpoints that a line may name. OpenAI itself has neither Anthropic's nor rerank; servers
// at other addresses may.
func (f *InputFlags) Serves() []string {
	served := wire.Served(f.Dialect, f.Vendor.Serves...)
	served = append(served, wire.Translates(f.Dialect)...)
	if f.Provider == ProviderOpenAI && IsOpenAI(f.BaseURL) {
		served = slices.DeleteFunc(served, func(operation string) bool {
			return operation == provider.Messages || operation == provider.Rerank
		})
	}
	return served
}

// paramTexts holds the values of --param, as they were given. A value may contain several, a line
// each: a variable and the file of --config give one value to a flag.
type paramTexts []string

// Set adds the parameters of a value, which has one a line.
func (p *paramTexts) Set(value string) error {
	for text := range strings.Lines(value) {
		if text = strings.TrimRight(text, "\r\n"); text != "" {
			*p = append(*p, text)
		}
	}
	return nil
}

// String returns a text from which Set reads the same parameters.
func (p *paramTexts) String() string { return strings.Join(*p, "\n") }

// Type is part of [pflag.Value]: the help shows it.
func (p *paramTexts) Type() string { return "NAME=VALUE" }

// parseParams parses the values of --param, and returns all faults together.
func (f *InputFlags) parseParams() error {
	var faults []error
	given := map[string]bool{}
	f.parsedParams = nil
	for _, text := range f.params {
		param, err := prompts.ParseParam(text)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("--param: %s", exit.PlainText(err)))
		case given[param.Name]:
			faults = append(faults, fmt.Errorf("--param: %s is set twice: keep one", param.Name))
		}
		given[param.Name] = true
		f.parsedParams = append(f.parsedParams, param)
	}
	return errors.Join(faults...)
}

// OpenInputs opens the files as one input. The function format returns the format of each file, where there
// are several.
func OpenInputs(stdin io.Reader, paths []string, format func(name string) prompts.Format) (promptfile.Input, error) {
	var inputs []promptfile.Input
	for _, path := range paths {
		if path == "-" && len(paths) > 1 {
			return promptfile.Input{}, exit.Refuse("standard input is an input of its own: join the files to it, as in cat part-1.jsonl … | headrace run -")
		}
		in, err := openInput(stdin, path)
		if err != nil {
			return in, err
		}
		inputs = append(inputs, in)
	}
	in, err := promptfile.Join(format, inputs...)
	if err != nil {
		text, _, _ := strings.Cut(exit.PlainText(err), ": ")
		return in, exit.Refuse("%s: leave one of them out", text)
	}
	return in, nil
}

// Matching replaces each pattern by the files that it matches, sorted by name. An argument that names an
// existing file stays as it is.
func Matching(args []string) (paths []string, err error) {
	for _, arg := range args {
		if _, err := os.Lstat(arg); err == nil || !strings.ContainsAny(arg, "*?[") || strings.Contains(arg, "://") {
			paths = append(paths, arg)
			continue
		}
		found, err := filepath.Glob(arg)
		switch {
		case err != nil:
			return nil, exit.Refuse("%s: the pattern is not well-formed: check the name of the input", arg)
		case len(found) == 0:
			return nil, exit.Refuse("%s: no file matches the pattern: check the name of the input", arg)
		}
		paths = append(paths, found...)
	}
	return paths, nil
}

// openInput opens one prompt file. Standard input and pipes can be read only once: their lines are checked
// while they are read.
func openInput(stdin io.Reader, path string) (promptfile.Input, error) {
	if path == "-" {
		return promptfile.Stream("standard input", stdin), nil
	}
	in, err := promptfile.File(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return in, exit.Refuse("%s: there is no such file: check the name of the input", path)
	case errors.Is(err, journal.ErrDirectory):
		return in, exit.Refuse("%s: it is a directory: name a prompt file in it", path)
	case err != nil:
		return in, InputFault(path, err)
	}
	return in, nil
}

// InputFault returns the error for an input that cannot be read. It names the file where there are several.
func InputFault(name string, err error) error {
	if at, is := errors.AsType[*fs.PathError](err); is {
		name = at.Path
	}
	return exit.Refuse("%s: %v: check the permissions of the input", name, disk.Bare(err))
}

// EstimateOf returns what is known of a request before its lane is: its prompt, and the
// bound on its output. The real usage corrects it right after the call.
func EstimateOf(q *prompts.Request) limiter.Cost {
	input, output := estimate.For(q.Endpoint, q.Body)
	return limiter.Cost{Requests: 1, Input: input, Output: output}
}

// CostOf returns the cost that a request draws when its provider lets it in.
func CostOf(c limiter.Charge, q *prompts.Request) limiter.Cost { return c.Of(EstimateOf(q)) }

// presetAuto leaves the preset to the base URL.
const presetAuto = "auto"

// presets lists the vendors that --preset names.
var presets = []string{
	"anthropic", "azure", "bedrock", "deepseek", "gemini", "generic", "groq", "llamacpp",
	"local", "mistral", "ollama", "openai", "openrouter", "together", "vllm",
}

func registerPreset(fs *pflag.FlagSet, to *string) {
	fs.StringVar(to, "preset", presetAuto, "how the provider counts tokens: auto (by --provider, and for openai by the base URL), or "+strings.Join(presets, ", "))
	NameValues(fs, map[string]string{"preset": "NAME"})
}

func checkPreset(name string) error {
	return OneOf("preset", name, append([]string{presetAuto}, presets...)...)
}

// priceFlags are the flags about prices, which plan and run share, and their table.
type priceFlags struct {
	price, prices string
	pricesText    string // of the file, where a job brings it; "": prices names the file
	Known         price.Table
}

// mostPricesOfJob bounds the prices that a job brings to its workers, in bytes. They stand in its record, which each
// change writes anew, and have room for two thousand models.
const mostPricesOfJob = 256 << 10

// PricesOfJob returns the text of the file of --prices, compact enough for a job to carry; "" if there is
// none.
func (f *priceFlags) PricesOfJob() (string, error) {
	if f.prices == "" {
		return "", nil
	}
	text, err := os.ReadFile(f.prices)
	if err != nil {
		return "", fmt.Errorf("--prices: %w: check the name of the file", err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return "", fmt.Errorf("--prices: %s: %w", f.prices, err)
	}
	if n := compact.Len(); n > mostPricesOfJob {
		return "", fmt.Errorf("--prices: %s: it has %d bytes, and a job brings %d at most to its workers: keep only the models of its lines", f.prices, n, mostPricesOfJob)
	}
	return compact.String(), nil
}

// BringPrices sets the text of a file of prices, in place of the file of --prices.
func (f *priceFlags) BringPrices(text string) { f.pricesText = text }

func (f *priceFlags) registerPrices(fs *pflag.FlagSet) {
	fs.StringVar(&f.price, "price", "", "USD per million tokens of input, output, cached input and cache writes, for all models that --prices does not name")
	fs.StringVar(&f.prices, "prices", "", `file of prices, which beat the built-in ones: {"model":{"input":2.5,"output":10,"cached":1.25,"cache_write":3}}, or that of genai-prices or litellm`)
	NameValues(fs, map[string]string{"price": "IN,OUT[,CACHED[,WRITE]]", "prices": "FILE"})
}

// readPrices makes the table, with the built-in prices of the called vendor. The simulated provider and local
// servers have no built-in prices, whatever their models are called. A preset selects a vendor's prices all
// the same.
func (f *priceFlags) readPrices(in *InputFlags, preset string) (err error) {
	vendor := in.Answering(preset).Name
	if in.Provider == ProviderSim || preset == presetAuto && in.BaseURL != "" && catalog.For("", in.BaseURL).Local {
		vendor = ""
	}
	if f.pricesText != "" {
		f.Known, err = price.ReadText(f.pricesText, f.price, vendor)
		return err
	}
	f.Known, err = price.Read(f.prices, f.price, vendor)
	return err
}
