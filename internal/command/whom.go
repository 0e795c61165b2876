package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/all"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/wire"
)

// whomFlags say which provider a command calls, or would: the vendor, its address, and the
// parts of that address.
type whomFlags struct {
	provider, baseURL string
	insecureHTTP      bool
	place             catalog.Place

	maxTokens      int
	maxTokensGiven bool

	vendor  catalog.Vendor   // of --provider; the zero value is the simulated one
	dialect provider.Dialect // the vendor's

	placed []string // flags of a place that were given
	madeOf string   // what the base URL is made of; "" if the user set it, or it is always the same
}

// Values of --provider that mean more than their row.
const (
	providerOpenAI = "openai"
	providerSim    = "sim"
)

// usualMaxTokens bounds the answer to a prompt line where the dialect demands a bound and
// the user sets none. It is some 3,000 English words, and every model in use may write as
// much.
const usualMaxTokens = 4096

// registerWhom registers the flags of the provider's address.
func (f *whomFlags) registerWhom(fs *pflag.FlagSet) {
	fs.StringVar(&f.place.Region, "region", "", "region of --provider bedrock, its variants and sagemaker, such as eu-west-1 (default: AWS_REGION)")
	fs.StringVar(&f.place.Project, "project", "", "project of --provider vertex and its variants (default: GOOGLE_CLOUD_PROJECT, or that of Google's credentials)")
	fs.StringVar(&f.place.Location, "location", "", "location of --provider vertex and its variants, such as global (default: GOOGLE_CLOUD_LOCATION)")
	fs.StringVar(&f.place.Resource, "resource", "", "resource of --provider azure, its variants and databricks: the first part of its address (default: AZURE_RESOURCE_NAME or the address in AZURE_OPENAI_ENDPOINT; of databricks, the address in DATABRICKS_HOST)")
	fs.IntVar(&f.maxTokens, "max-tokens", usualMaxTokens, "max_tokens where the provider requires one and the line has none (anthropic); if set, translated chats get it, too")
	nameValues(fs, map[string]string{
		"provider": "NAME", "base-url": "URL", "region": "NAME", "project": "NAME", "location": "NAME", "resource": "NAME", "max-tokens": "N",
	})
}

// completeProvider offers the names of providers to the shell.
func completeProvider(cmd *cobra.Command) {
	names := make([]cobra.Completion, 0, len(catalog.Rows())+1)
	for _, v := range catalog.Rows() {
		names = append(names, cobra.CompletionWithDesc(v.Name, v.Title))
	}
	names = append(names, cobra.CompletionWithDesc(providerSim, "simulated, needs no key"))
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// resolve finds the vendor, and the parts of its address in the environment.
func (f *whomFlags) resolve(fs *pflag.FlagSet, env func(string) (string, bool)) error {
	f.maxTokensGiven = fs.Changed("max-tokens")
	for _, part := range placeParts {
		if fs.Changed(part) {
			f.placed = append(f.placed, part)
		}
	}
	typed := f.provider
	f.provider = strings.ToLower(typed)
	if f.provider == providerSim {
		f.dialect = dialectNamed(providerOpenAI)
		return nil
	}
	var known bool
	f.locateOpenAI(env)
	if err := f.checkEnded(); err != nil {
		return err
	}
	if f.vendor, known = catalog.Named(f.provider); !known {
		return fmt.Errorf("--provider: %q is not known: %suse one of headrace help providers, or openai with --base-url for any compatible server",
			typed, didYouMean(meant(f.provider)))
	}
	f.dialect = f.vendor.Dialect
	f.place = fromUsual(f.place, f.vendor, env)
	return atLeast("max-tokens", f.maxTokens, 1)
}

// checkEnded refuses a vendor that no longer answers, by its name or by its address.
func (f *whomFlags) checkEnded() error {
	if why := catalog.Ended(cmp.Or(otherNames[f.provider], f.provider), ""); why != "" {
		return fmt.Errorf("--provider %s answers no longer: %s: use one of headrace help providers", f.provider, why)
	}
	if why := catalog.Ended("", f.baseURL); why != "" {
		return fmt.Errorf("%s: %s answers no longer: %s", f.toldBy(), hostOf(f.baseURL), why)
	}
	return nil
}

// dialectNamed returns a dialect by its name. This program speaks that of every vendor.
func dialectNamed(name string) provider.Dialect {
	entry, _ := all.Named(name)
	return entry.Dialect
}

// demandsBound reports whether the dialect refuses a chat without a bound on its answer.
func (f *whomFlags) demandsBound() bool {
	err := f.takes(provider.Request{Endpoint: provider.Chat, Model: "any", Body: []byte(`{"messages":[{"role":"user","content":"Hi"}]}`)})
	_, refused := errors.AsType[*provider.Untranslatable](err)
	return refused
}

// fromUsual takes the parts of a place that the user has not set from their usual variables.
func fromUsual(p catalog.Place, v catalog.Vendor, env func(string) (string, bool)) catalog.Place {
	for part, to := range map[string]*string{"region": &p.Region, "project": &p.Project, "location": &p.Location, "resource": &p.Resource} {
		for _, name := range v.Variables(part) {
			if value, _ := env(name); *to == "" {
				*to = strings.TrimSpace(value)
			}
		}
	}
	return p
}

// name returns the name of the provider in lanes and results.
func (f *whomFlags) name() string { return cmp.Or(f.vendor.Name, providerSim) }

// isOpenAIShaped reports whether answers are in the shape of OpenAI's.
func (f *whomFlags) isOpenAIShaped() bool { return f.dialect.Name() == providerOpenAI }

// whoAnswers returns the vendor whose rules hold: that of --preset, else that of --provider.
// Under --provider openai it is the vendor at the base URL.
func (f *whomFlags) whoAnswers(preset string) catalog.Vendor {
	switch {
	case preset != presetAuto:
		return catalog.For(preset, "")
	case f.provider == providerSim:
		return catalog.For("", "")
	case f.provider != providerOpenAI:
		return f.vendor
	}
	return catalog.For("", f.baseURL)
}

// takes says what is wrong with a request that must be translated for the provider; nil if nothing
// is. The operation of a line says which shape the line has already.
func (f *whomFlags) takes(r provider.Request) error {
	served := wire.Served(f.dialect, f.vendor.Serves...)
	if slices.Contains(served, r.Endpoint) {
		return nil
	}
	operation, _, err := wire.Translate(f.dialect, served, r)
	if why := new(provider.Untranslatable); errors.As(err, &why) {
		why.Lane = laneOf(f.name(), r.Model, f.vendor.ByAccount)
	} else if err != nil {
		return fmt.Errorf("%s does not have %s", f.name(), operation)
	}
	return err
}

// takesLine is takes for the requests that a job makes of the lines of an input. It returns nil
// where the provider takes every line as it is.
func (f *inputFlags) takesLine() func(*prompts.Request) error {
	if f.isOpenAIShaped() {
		return nil
	}
	job := promptfile.Config{MaxTokens: f.boundOfChats(), MaxTokensOfPrompts: f.maxTokens}
	return func(q *prompts.Request) error { return f.takes(job.Asks(q)) }
}

// boundOfChats returns the user's bound for the answer to a translated chat that has no bound
// of its own, in tokens; 0 is none.
func (f *inputFlags) boundOfChats() int {
	if f.maxTokensGiven {
		return f.maxTokens
	}
	return 0
}
