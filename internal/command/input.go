package command

import (
	"errors"
	"slices"
	"text/template"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/wire"
)

// inputFlags are the flags of every command that reads prompts: they say how to read a line,
// and for which provider. All such commands take and refuse the same values.
type inputFlags struct {
	whomFlags
	model, endpoint  string
	format, template string
	parsed           *template.Template // --template, nil for none
	system           string
	params           paramTexts
	parsedParams     []prompts.Param
	onBadLine        string
	onUntranslatable string
	limit            int
}

// registerInput registers the flags about the input alone.
func (f *inputFlags) registerInput(fs *pflag.FlagSet, onBadLine string) {
	fs.StringVar(&f.model, "model", "", "model for lines that name none")
	fs.StringVar(&f.endpoint, "endpoint", prompts.ChatCompletions, "endpoint for lines that name none")
	fs.StringVar(&f.format, "format", formatAuto, "format of the input: jsonl, text (one prompt a line), csv (one item a row) or auto (csv if the name ends so, else jsonl)")
	fs.StringVar(&f.template, "template", "", "Go template that makes the prompt from an item's fields, such as \"Translate: {{.text}}\"")
	fs.Var(&f.params, "param", "parameter for lines that do not set it, such as max_tokens=50 or stop=END; repeatable (see headrace help input)")
	fs.StringVar(&f.onBadLine, "on-bad-line", badLineFail, onBadLine)
	fs.StringVar(&f.onUntranslatable, "on-untranslatable", badLineFail, "when a chat cannot be converted to the provider's API: fail (nothing is called) or skip")
	fs.StringVar(&f.system, "system", "", "system message for lines that are only a prompt")
	fs.IntVar(&f.limit, "limit", 0, "run only the first N items; 0: all")
	nameValues(fs, map[string]string{
		"model": "NAME", "endpoint": "PATH", "format": "NAME", "template": "TEXT", "on-bad-line": "MODE", "on-untranslatable": "MODE", "system": "TEXT", "limit": "N",
	})
}

// readerConfig says how to read the input of that name.
func (f *inputFlags) readerConfig(name string) prompts.Config {
	return prompts.Config{
		DefaultModel: f.defaultModel(), DefaultEndpoint: f.endpoint,
		System: f.system, Serves: f.serves(), Takes: f.takesLine(),
		Params: f.parsedParams, Format: f.formatOf(name), Template: f.parsed, Limit: f.limit,
	}
}

func (f *inputFlags) defaultModel() string {
	if f.model == "" && f.provider == providerSim {
		return simDefaultModel
	}
	return f.model
}

// serves lists the endpoints that a line may be for. OpenAI itself does not have Anthropic's
// and rerank; servers at another address have them or answer that they do not.
func (f *inputFlags) serves() []string {
	served := wire.Served(f.dialect, f.vendor.Serves...)
	served = append(served, wire.Translates(f.dialect)...)
	if f.provider == providerOpenAI && isOpenAI(f.baseURL) {
		served = slices.DeleteFunc(served, func(operation string) bool {
			return operation == provider.Messages || operation == provider.Rerank
		})
	}
	return served
}

// scan reads an input to its end before anything else happens: a bad line ends the command,
// unless such lines are skipped.
func (w *World) scan(f *inputFlags, src promptfile.Input, take func(prompts.Request)) (promptfile.Scanned, error) {
	cfg := f.readerConfig(src.Name)
	cfg.NoKeys = true
	found, err := promptfile.Scan(src, cfg, nil, take)
	switch {
	case errors.Is(err, promptfile.ErrInput):
		return found, inputFault(src.Name, err)
	case err != nil:
		return found, refuse("%s", plainText(err))
	}
	if fatal := found.Fatal(f.skipsBadLines(), f.skipsUntranslatable()); fatal != nil {
		return found, (&runner{World: w, flags: &runFlags{inputFlags: *f}, input: src.Name}).badLines(fatal)
	}
	return found, nil
}
