package settings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/all"
	"github.com/headrace/headrace/provider/auth/google"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/wire"
)

// VendorFlags say which provider a command calls, or would: the vendor, its address, and the
// parts of that address.
type VendorFlags struct {
	Provider, BaseURL string
	insecureHTTP      bool
	Place             catalog.Place

	MaxTokens      int
	MaxTokensGiven bool

	Vendor  catalog.Vendor   // of --provider; the zero value is the simulated one
	Dialect provider.Dialect // the vendor's

	Placed []string // flags of a place that were given
	MadeOf string   // what the base URL is made of; "" if the user set it, or it is always the same
}

// Values of --provider that mean more than their row.
const (
	ProviderOpenAI = "openai"
	ProviderSim    = "sim"
)

// usualMaxTokens bounds the answer to a prompt line where the dialect demands a bound and
// the user sets none. It is some 3,000 English words, and every model in use may write as
// much.
const usualMaxTokens = 4096

// registerVendor registers the flags of the provider's address.
func (f *VendorFlags) registerVendor(fs *pflag.FlagSet) {
	fs.StringVar(&f.Place.Region, "region", "", "region of --provider bedrock, its variants and sagemaker, such as eu-west-1 (default: AWS_REGION)")
	fs.StringVar(&f.Place.Project, "project", "", "project of --provider vertex and its variants (default: GOOGLE_CLOUD_PROJECT, or that of Google's credentials)")
	fs.StringVar(&f.Place.Location, "location", "", "location of --provider vertex and its variants, such as global (default: GOOGLE_CLOUD_LOCATION)")
	fs.StringVar(&f.Place.Resource, "resource", "", "resource of --provider azure, its variants and databricks: the first part of its address (default: AZURE_RESOURCE_NAME or the address in AZURE_OPENAI_ENDPOINT; of databricks, the address in DATABRICKS_HOST)")
	fs.IntVar(&f.MaxTokens, "max-tokens", usualMaxTokens, "max_tokens where the provider requires one and the line has none (anthropic); if set, translated chats get it, too")
	NameValues(fs, map[string]string{
		"provider": "NAME", "base-url": "URL", "region": "NAME", "project": "NAME", "location": "NAME", "resource": "NAME", "max-tokens": "N",
	})
}

// Resolve finds the vendor by its name, and looks up the parts of its address in the environment.
func (f *VendorFlags) Resolve(fs *pflag.FlagSet, env func(string) (string, bool)) error {
	f.MaxTokensGiven = fs.Changed("max-tokens")
	for _, part := range PlaceParts {
		if fs.Changed(part) {
			f.Placed = append(f.Placed, part)
		}
	}
	typed := f.Provider
	f.Provider = strings.ToLower(typed)
	if f.Provider == ProviderSim {
		f.Dialect = dialectNamed(ProviderOpenAI)
		return nil
	}
	var known bool
	f.locateOpenAI(env)
	if err := f.checkEnded(); err != nil {
		return err
	}
	if f.Vendor, known = catalog.Named(f.Provider); !known {
		return fmt.Errorf("--provider: %q is not known: %suse one of headrace help providers, or openai with --base-url for any compatible server",
			typed, DidYouMean(likelyVendor(f.Provider)))
	}
	f.Dialect = f.Vendor.Dialect
	f.Place = placeFromVariables(f.Place, f.Vendor, env)
	return AtLeast("max-tokens", f.MaxTokens, 1)
}

// checkEnded refuses a vendor that no longer answers, by its name or by its address.
func (f *VendorFlags) checkEnded() error {
	if why := catalog.Ended(cmp.Or(otherNames[f.Provider], f.Provider), ""); why != "" {
		return fmt.Errorf("--provider %s answers no longer: %s: use one of headrace help providers", f.Provider, why)
	}
	if why := catalog.Ended("", f.BaseURL); why != "" {
		return fmt.Errorf("%s: %s answers no longer: %s", f.AddressSource(), HostOf(f.BaseURL), why)
	}
	return nil
}

// dialectNamed returns a dialect by its name. This program speaks that of every vendor.
func dialectNamed(name string) provider.Dialect {
	entry, _ := all.Named(name)
	return entry.Dialect
}

// DemandsBound reports whether the dialect refuses a chat without a bound on its answer.
func (f *VendorFlags) DemandsBound() bool {
	err := f.checkTranslatable(provider.Request{Endpoint: provider.Chat, Model: "any", Body: []byte(`{"messages":[{"role":"user","content":"Hi"}]}`)})
	_, refused := errors.AsType[*provider.Untranslatable](err)
	return refused
}

// placeFromVariables fills in the parts of a place that the user has not set, from the vendor's usual
// variables.
func placeFromVariables(p catalog.Place, v catalog.Vendor, env func(string) (string, bool)) catalog.Place {
	for part, target := range map[string]*string{"region": &p.Region, "project": &p.Project, "location": &p.Location, "resource": &p.Resource} {
		for _, name := range v.Variables(part) {
			if value, _ := env(name); *target == "" {
				*target = strings.TrimSpace(value)
			}
		}
	}
	return p
}

// Name returns the name of the provider in lanes and results.
func (f *VendorFlags) Name() string { return cmp.Or(f.Vendor.Name, ProviderSim) }

// IsOpenAIShaped reports whether answers are in the shape of OpenAI's.
func (f *VendorFlags) IsOpenAIShaped() bool { return f.Dialect.Name() == ProviderOpenAI }

// Answering returns the vendor whose rules hold: that of --preset, else that of --provider. Under --provider
// openai it is the vendor at the base URL.
func (f *VendorFlags) Answering(preset string) catalog.Vendor {
	switch {
	case preset != presetAuto:
		return catalog.For(preset, "")
	case f.Provider == ProviderSim:
		return catalog.For("", "")
	case f.Provider != ProviderOpenAI:
		return f.Vendor
	}
	return catalog.For("", f.BaseURL)
}

// checkTranslatable returns an error if the provider cannot take the request, even translated. The request's
// endpoint tells which shape it already has.
func (f *VendorFlags) checkTranslatable(r provider.Request) error {
	served := wire.Served(f.Dialect, f.Vendor.Serves...)
	if slices.Contains(served, r.Endpoint) {
		return nil
	}
	operation, _, err := wire.Translate(f.Dialect, served, r)
	if why := new(provider.Untranslatable); errors.As(err, &why) {
		why.Lane = LaneOf(f.Name(), r.Model, f.Vendor.ByAccount)
	} else if err != nil {
		return fmt.Errorf("%s does not have %s", f.Name(), operation)
	}
	return err
}

// TakesLine returns checkTranslatable for the requests that a job makes of input lines. It returns nil where
// the provider takes every line as it is.
func (f *InputFlags) TakesLine() func(*prompts.Request) error {
	if f.IsOpenAIShaped() {
		return nil
	}
	job := promptfile.Config{MaxTokens: f.BoundOfChats(), MaxTokensOfPrompts: f.MaxTokens}
	return func(q *prompts.Request) error { return f.checkTranslatable(job.Asks(q)) }
}

// AnswerBounds returns the most tokens of answers to lines without a bound of their own, for chats and for
// prompts. Both are 0 if no provider of the run demands a bound, as calls then go out without one.
func (f *Flags) AnswerBounds() (chats, ofPrompts int) {
	demands := f.DemandsBound()
	if f.Fleet != nil {
		demands = slices.ContainsFunc(f.Fleet.Lanes, func(l LaneSpec) bool { return l.Flags.DemandsBound() })
	}
	if !demands {
		return 0, 0
	}
	return f.BoundOfChats(), f.MaxTokens
}

// BoundOfChats returns the user's bound for the answer to a translated chat that has no bound
// of its own, in tokens; 0 is none.
func (f *InputFlags) BoundOfChats() int {
	if f.MaxTokensGiven {
		return f.MaxTokens
	}
	return 0
}

// PlaceParts lists the flags that name a place at a vendor.
var PlaceParts = []string{"region", "project", "location", "resource"}

// usualParts gives examples for those flags.
var usualParts = map[string]string{"region": "eu-west-1", "project": "my-project-123", "location": "global", "resource": "acme"}

// OpenAIBaseURL is the variable in which OpenAI's own clients look for an address.
const OpenAIBaseURL = "OPENAI_BASE_URL"

// locateOpenAI takes the address of OpenAI's variable, unless the user has set one.
func (f *VendorFlags) locateOpenAI(env func(string) (string, bool)) {
	if base, _ := env(OpenAIBaseURL); f.Provider == ProviderOpenAI && f.BaseURL == "" && strings.TrimSpace(base) != "" {
		f.BaseURL, f.MadeOf = strings.TrimSpace(base), OpenAIBaseURL
	}
}

// locate sets the base URL of a vendor other than openai, unless the user has set one.
func (f *VendorFlags) locate(env func(string) (string, bool)) error {
	if f.BaseURL != "" || f.Provider == ProviderOpenAI || f.Provider == ProviderSim {
		return nil
	}
	if endpoint := f.endpointIn(env); endpoint != "" && (f.Place.Resource == "" || !f.needsResource()) {
		return f.locateAt(endpoint)
	}
	f.findProject()
	if missing := f.Missing(f.Vendor.Needs()); missing != "" {
		return fmt.Errorf("--provider %s needs %s", f.Provider, missing)
	}
	base, err := f.Vendor.Address(f.Place)
	var part *catalog.PartError
	switch {
	case errors.Is(err, catalog.ErrNoAddress):
		return fmt.Errorf("--provider %s has no address of its own: set it with --base-url", f.Provider)
	case errors.As(err, &part):
		return f.partFault(part)
	case err != nil:
		return fmt.Errorf("--provider %s: %s", f.Provider, exit.PlainText(err))
	}
	f.BaseURL, f.MadeOf = base, Dashed(f.Vendor.Needs())
	return nil
}

func (f *VendorFlags) needsResource() bool { return slices.Contains(f.Vendor.Needs(), "resource") }

// endpointIn returns the address in the vendor's own variable; "" if there is none.
func (f *VendorFlags) endpointIn(env func(string) (string, bool)) string {
	if f.Vendor.Endpoint == "" {
		return ""
	}
	endpoint, _ := env(f.Vendor.Endpoint)
	return strings.TrimSpace(endpoint)
}

// credentialsTimeout bounds the search for the project of Google's credentials. Where no file
// has them, the search asks the machine whether it is one of Google's.
const credentialsTimeout = 5 * time.Second

// findProject sets the project from Google's credentials, if the address needs one and the user has set none.
func (f *VendorFlags) findProject() {
	if f.Vendor.Auth != catalog.Google || f.Place.Project != "" || !slices.Contains(f.Vendor.Needs(), "project") {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), credentialsTimeout)
	defer cancel()
	if found, err := google.Find(ctx, nil); err == nil { // their faults are reported when they are needed
		f.Place.Project = found.Project
	}
}

// locateAt sets the base URL to an address from the vendor's variable. The address may lack the path of the
// vendor's row.
func (f *VendorFlags) locateAt(endpoint string) error {
	row, err := url.Parse(strings.ReplaceAll(f.Vendor.Base, "{resource}", "acme"))
	if err != nil {
		return fmt.Errorf("--provider %s: %w", f.Provider, err)
	}
	address, err := url.Parse(endpoint)
	if err != nil || address.Scheme != "https" && address.Scheme != "http" || address.Host == "" {
		advice := "write it as in https://" + row.Host
		if f.needsResource() {
			advice += ", or set --resource"
		}
		return fmt.Errorf("%s: %q is not an address: %s", f.Vendor.Endpoint, exit.WithoutKeys(endpoint), advice)
	}
	firstPart, _, _ := strings.Cut(strings.TrimPrefix(row.Path, "/"), "/")
	prefix, _, _ := strings.Cut(strings.TrimRight(address.Path, "/")+"/", "/"+firstPart+"/")
	address.Path, address.RawQuery = strings.TrimRight(prefix, "/")+row.Path, ""
	f.BaseURL, f.MadeOf = address.String(), f.Vendor.Endpoint
	return nil
}

// Missing returns the flags and variables for the parts that are not set; "" if all are.
func (f *VendorFlags) Missing(parts []string) string {
	var missing []string
	for _, part := range parts {
		if f.part(part) != "" {
			continue
		}
		missing = append(missing, fmt.Sprintf("--%s (or %s)", part, strings.Join(f.variables(part), ", ")))
	}
	return strings.Join(missing, " and ")
}

// variables lists those that may contain a part of the address, or the address itself.
func (f *VendorFlags) variables(part string) []string {
	names := slices.Clone(f.Vendor.Variables(part))
	if part == "resource" && f.Vendor.Endpoint != "" {
		names = append(names, f.Vendor.Endpoint)
	}
	return names
}

// partFault returns the error for an invalid part of an address, with advice.
func (f *VendorFlags) partFault(e *catalog.PartError) error {
	advice := "only letters, digits, - and _ are allowed, as in " + usualParts[e.Part]
	if strings.ContainsAny(e.Value, ".:/") {
		advice += "; set a whole address with --base-url"
	}
	where := "--" + e.Part
	if variables := f.Vendor.Variables(e.Part); len(variables) > 0 {
		where += " (or " + strings.Join(variables, ", ") + ")"
	}
	return fmt.Errorf("%s: %q is invalid: %s", where, exit.WithoutKeys(e.Value), advice)
}

func (f *VendorFlags) part(name string) string {
	return map[string]string{"region": f.Place.Region, "project": f.Place.Project, "location": f.Place.Location, "resource": f.Place.Resource}[name]
}

// AddressSource names the flags, or the variable, that gave the address.
func (f *VendorFlags) AddressSource() string { return cmp.Or(f.MadeOf, "--base-url") }

// Dashed lists flags; "" for none.
func Dashed(flags []string) string {
	var names []string
	for _, name := range flags {
		names = append(names, "--"+name)
	}
	return strings.Join(names, " and ")
}

// WhereFrom adapts advice to the vendor. It names the sources of the address in place of --base-url, and the
// vendor's usual address in place of OpenAI's.
func (f *VendorFlags) WhereFrom(advice string) string {
	if f.MadeOf != "" {
		advice = strings.ReplaceAll(advice, "--base-url", f.MadeOf)
	}
	const openAIs = ", whose path often ends in /v1"
	switch {
	case f.Provider == ProviderOpenAI || f.Vendor.Local || f.Vendor.Base == "":
		return advice
	case f.IsTheirOwn():
		return strings.ReplaceAll(advice, openAIs, "")
	}
	return strings.ReplaceAll(advice, openAIs, fmt.Sprintf(" (%s itself is at %s)", f.Provider, f.Vendor.Base))
}

// IsTheirOwn reports whether the address is that of the vendor's row.
func (f *VendorFlags) IsTheirOwn() bool {
	return f.Provider != ProviderOpenAI && (f.MadeOf != "" || f.Vendor.Answers(f.BaseURL))
}

// otherNames lists popular names of vendors that have another name here.
var otherNames = map[string]string{
	"claude": "anthropic", "google": "gemini", "aistudio": "gemini", "google-ai-studio": "gemini",
	"vertexai": "vertex", "vertex-ai": "vertex", "google-vertex": "vertex",
	"aws": "bedrock", "amazon": "bedrock", "amazon-bedrock": "bedrock", "aws-bedrock": "bedrock",
	"azure-openai": "azure", "azureopenai": "azure", "microsoft": "azure", "foundry": "azure",
	"grok": "xai", "x-ai": "xai", "kimi": "moonshot", "glm": "zai", "z-ai": "zai", "zhipu": "zai-cn",
	"vertex-claude": "vertex-anthropic", "claude-on-vertex": "vertex-anthropic", "qwen": "dashscope", "alibaba": "dashscope", "aliyun": "dashscope-cn", "bailian": "dashscope-cn",
	"bigmodel": "zai-cn", "zhipuai": "zai-cn", "azure-ai-foundry": "azure-ai", "ollama.com": "ollama-cloud",
	"hf": "huggingface", "hugging-face": "huggingface", "github": "github-models", "nim": "nvidia",
	"together-ai": "together", "togetherai": "together", "fireworks-ai": "fireworks", "mistralai": "mistral",
	"gpt": "openai", "chatgpt": "openai", "llama.cpp": "llamacpp", "llama-cpp": "llamacpp", "lm-studio": "lmstudio",
	"litellm": "generic", "portkey": "generic", "simulated": ProviderSim, "simulator": ProviderSim,
}

// likelyVendor returns the vendor that the user most likely meant; "" if there is none.
func likelyVendor(typed string) string {
	if name := otherNames[typed]; name != "" {
		return name
	}
	return Nearest(typed, append(catalog.Names(), ProviderSim))
}

// useVendor sets the defaults of the vendor where the user has set nothing. They are the variable of the key,
// the timeout, the most calls in flight, and the endpoint.
func (f *Flags) useVendor(flags *pflag.FlagSet, env func(string) (string, bool)) {
	if timeout := f.Vendor.Timeout; timeout > 0 && !flags.Changed("timeout") {
		f.Timeout = timeout
	}
	if (f.ServiceTier == catalog.Flex || f.ServiceTier == TierAuto) && !flags.Changed("timeout") {
		f.Timeout = max(f.Timeout, flexTimeout)
	}
	if serves := f.Vendor.Serves; len(serves) > 0 && prompts.KnownEndpoint(serves[0]) && !flags.Changed("endpoint") {
		f.endpoint = serves[0]
	}
	if most := f.Vendor.InFlight; most > 0 && most < f.Concurrency && !flags.Changed("concurrency") {
		f.Concurrency, f.FewInFlight = most, true
	}
	if f.KeyEnvGiven {
		return
	}
	f.KeyEnv = DefaultKeyEnv
	for i, name := range f.Vendor.Keys {
		value, _ := env(name)
		isSet := strings.TrimSpace(value) != "" // as keyInEnvironment does
		if isSet || i == 0 {
			f.KeyEnv = name
		}
		if isSet {
			return
		}
	}
}

// DefaultKeyEnv is the variable in which a key is looked for, where the provider has no
// variable of its own.
const DefaultKeyEnv = "OPENAI_API_KEY"

// Fields returns which extra fields result lines get where not all answers are in OpenAI's shape.
func (f *Flags) Fields() (fields promptfile.Fields) {
	if f.Fleet != nil {
		return promptfile.Fields{Text: f.WritesText()}
	}
	if fields.Text = f.WritesText(); !f.IsOpenAIShaped() {
		fields.Provider = f.Name()
	}
	return fields
}

// WritesText reports whether result lines have the answer's text in a field of its own.
func (f *Flags) WritesText() bool {
	if f.Fleet != nil && f.text == textAuto {
		return !f.Fleet.SpeaksOpenAI()
	}
	return f.text == textAlways || f.text == textAuto && !f.IsOpenAIShaped()
}

// AnswerText has the client read the words of answers, or not, whatever --text says.
func (f *Flags) AnswerText(isRead bool) {
	if f.text = textNever; isRead {
		f.text = textAlways
	}
}

// Streams says which answers come as streams, and how long one may be silent.
func (f *Flags) Streams() (when wire.StreamWhen, idle time.Duration) {
	if idle = f.streamIdle; idle == 0 {
		idle = -1 // for ever, as 0 is the default
	}
	return map[string]wire.StreamWhen{streamAlways: wire.StreamAlways, streamAuto: wire.StreamAuto}[f.stream], idle
}

// IsOpenAI reports whether an address is OpenAI's own; the empty one is.
func IsOpenAI(base string) bool {
	host := strings.ToLower(HostOf(base))
	return base == "" || host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com") // regions precede the name
}

// HostOf returns the host name in a URL; "" if there is none.
func HostOf(base string) string {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// HostPortOf returns the host of a URL with the port that stands there; "" if there is none.
func HostPortOf(base string) string {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil {
		return ""
	}
	return u.Host
}

// IsLoopback reports whether a host is this machine.
func IsLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// LaneOf names the lane of a model: one for all where they draw on one quota.
func LaneOf(provider, model string, shared bool) string {
	if shared {
		return provider + "/all-models"
	}
	return provider + "/" + model
}

// SimDefaultModel is the model of lines that name none, on the simulated provider.
const SimDefaultModel = "sim-1"

// CustomAddress returns the called address if it is not a vendor's public one; "" if it is.
func (f *VendorFlags) CustomAddress() string {
	if f.Provider == ProviderSim || f.BaseURL == f.Vendor.Base || f.Provider == ProviderOpenAI && IsOpenAI(f.BaseURL) {
		return ""
	}
	return f.BaseURL
}
