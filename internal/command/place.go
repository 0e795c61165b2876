package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/provider/auth/google"
	"github.com/headrace/headrace/provider/catalog"
)

// placeParts lists the flags that name a place at a vendor.
var placeParts = []string{"region", "project", "location", "resource"}

// usualParts gives examples for those flags.
var usualParts = map[string]string{"region": "eu-west-1", "project": "my-project-123", "location": "global", "resource": "acme"}

// openAIBaseURL is the variable in which OpenAI's own clients look for an address.
const openAIBaseURL = "OPENAI_BASE_URL"

// locateOpenAI takes the address of OpenAI's variable, unless the user has set one.
func (f *whomFlags) locateOpenAI(env func(string) (string, bool)) {
	if base, _ := env(openAIBaseURL); f.provider == providerOpenAI && f.baseURL == "" && strings.TrimSpace(base) != "" {
		f.baseURL, f.madeOf = strings.TrimSpace(base), openAIBaseURL
	}
}

// locate makes the base URL of a vendor other than openai, unless the user has set one.
func (f *whomFlags) locate(env func(string) (string, bool)) error {
	if f.baseURL != "" || f.provider == providerOpenAI || f.provider == providerSim {
		return nil
	}
	if endpoint := f.endpointIn(env); endpoint != "" && (f.place.Resource == "" || !f.needsResource()) {
		return f.locateAt(endpoint)
	}
	f.findProject()
	if missing := f.missing(f.vendor.Needs()); missing != "" {
		return fmt.Errorf("--provider %s needs %s", f.provider, missing)
	}
	base, err := f.vendor.Address(f.place)
	var part *catalog.PartError
	switch {
	case errors.Is(err, catalog.ErrNoAddress):
		return fmt.Errorf("--provider %s has no address of its own: set it with --base-url", f.provider)
	case errors.As(err, &part):
		return f.partFault(part)
	case err != nil:
		return fmt.Errorf("--provider %s: %s", f.provider, plainText(err))
	}
	f.baseURL, f.madeOf = base, dashed(f.vendor.Needs())
	return nil
}

func (f *whomFlags) needsResource() bool { return slices.Contains(f.vendor.Needs(), "resource") }

// endpointIn returns the address in the vendor's own variable; "" if there is none.
func (f *whomFlags) endpointIn(env func(string) (string, bool)) string {
	if f.vendor.Endpoint == "" {
		return ""
	}
	endpoint, _ := env(f.vendor.Endpoint)
	return strings.TrimSpace(endpoint)
}

// credentialsTimeout bounds the search for the project of Google's credentials. Where no file
// has them, the search asks the machine whether it is one of Google's.
const credentialsTimeout = 5 * time.Second

// findProject takes the project that Google's credentials name, if the address needs one and
// the user has set none.
func (f *whomFlags) findProject() {
	if f.vendor.Auth != catalog.Google || f.place.Project != "" || !slices.Contains(f.vendor.Needs(), "project") {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), credentialsTimeout)
	defer cancel()
	if found, err := google.Find(ctx, nil); err == nil { // their faults are reported when they are needed
		f.place.Project = found.Project
	}
}

// locateAt takes an address from the vendor's variable, with or without the path of the
// vendor's row.
func (f *whomFlags) locateAt(endpoint string) error {
	row, err := url.Parse(strings.ReplaceAll(f.vendor.Base, "{resource}", "acme"))
	if err != nil {
		return fmt.Errorf("--provider %s: %w", f.provider, err)
	}
	at, err := url.Parse(endpoint)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" {
		advice := "write it as in https://" + row.Host
		if f.needsResource() {
			advice += ", or set --resource"
		}
		return fmt.Errorf("%s: %q is not an address: %s", f.vendor.Endpoint, withoutKeys(endpoint), advice)
	}
	door, _, _ := strings.Cut(strings.TrimPrefix(row.Path, "/"), "/")
	before, _, _ := strings.Cut(strings.TrimRight(at.Path, "/")+"/", "/"+door+"/")
	at.Path, at.RawQuery = strings.TrimRight(before, "/")+row.Path, ""
	f.baseURL, f.madeOf = at.String(), f.vendor.Endpoint
	return nil
}

// missing names the flags and variables of the parts that are not set; "" if all are.
func (f *whomFlags) missing(parts []string) string {
	var list []string
	for _, part := range parts {
		if f.part(part) != "" {
			continue
		}
		list = append(list, fmt.Sprintf("--%s (or %s)", part, strings.Join(f.variables(part), ", ")))
	}
	return strings.Join(list, " and ")
}

// variables lists those that may contain a part of the address, or the address itself.
func (f *whomFlags) variables(part string) []string {
	names := slices.Clone(f.vendor.Variables(part))
	if part == "resource" && f.vendor.Endpoint != "" {
		names = append(names, f.vendor.Endpoint)
	}
	return names
}

// partFault says what is wrong with a part of an address.
func (f *whomFlags) partFault(e *catalog.PartError) error {
	advice := "only letters, digits, - and _ are allowed, as in " + usualParts[e.Part]
	if strings.ContainsAny(e.Value, ".:/") {
		advice += "; set a whole address with --base-url"
	}
	where := "--" + e.Part
	if variables := f.vendor.Variables(e.Part); len(variables) > 0 {
		where += " (or " + strings.Join(variables, ", ") + ")"
	}
	return fmt.Errorf("%s: %q is invalid: %s", where, withoutKeys(e.Value), advice)
}

func (f *whomFlags) part(name string) string {
	return map[string]string{"region": f.place.Region, "project": f.place.Project, "location": f.place.Location, "resource": f.place.Resource}[name]
}

// toldBy names the flags, or the variable, that gave the address.
func (f *whomFlags) toldBy() string { return cmp.Or(f.madeOf, "--base-url") }

// dashed lists flags; "" for none.
func dashed(flags []string) string {
	var names []string
	for _, name := range flags {
		names = append(names, "--"+name)
	}
	return strings.Join(names, " and ")
}

// sayUnused names the flags of a place that do not affect the address. It also says that a
// bound is not added to lines that are sent as they are.
func (r *runner) sayUnused(b *backend) {
	if r.flags.maxTokensGiven && r.flags.isOpenAIShaped() {
		b.note(event.Unused, fmt.Sprintf("--max-tokens: ignored with --provider %s: give lines their own max_tokens", b.name))
	}
	signs := r.flags.vendor.Auth == catalog.AWS // for a region, wherever it is
	var unused []string
	for _, part := range r.flags.placed {
		if !slices.Contains(r.flags.vendor.Needs(), part) || r.flags.madeOf == "" && !(signs && part == "region") {
			unused = append(unused, part)
		}
	}
	if len(unused) == 0 {
		return
	}
	with := "--provider " + b.name
	if r.flags.madeOf == "" && len(r.flags.vendor.Needs()) > 0 {
		with = "--base-url"
	}
	b.note(event.Unused, fmt.Sprintf("%s: ignored with %s", dashed(unused), with))
}

// whereFrom adapts an advice to the vendor. It names the sources of the address in place of
// --base-url, and the vendor's usual address in place of OpenAI's.
func (f *whomFlags) whereFrom(advice string) string {
	if f.madeOf != "" {
		advice = strings.ReplaceAll(advice, "--base-url", f.madeOf)
	}
	const openAIs = ", whose path often ends in /v1"
	switch {
	case f.provider == providerOpenAI || f.vendor.Local || f.vendor.Base == "":
		return advice
	case f.isTheirOwn():
		return strings.ReplaceAll(advice, openAIs, "")
	}
	return strings.ReplaceAll(advice, openAIs, fmt.Sprintf(" (%s itself is at %s)", f.provider, f.vendor.Base))
}

// isTheirOwn reports whether the address is that of the vendor's row.
func (f *whomFlags) isTheirOwn() bool {
	return f.provider != providerOpenAI && (f.madeOf != "" || f.vendor.Answers(f.baseURL))
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
	"litellm": "generic", "portkey": "generic", "simulated": providerSim, "simulator": providerSim,
}

// meant returns the vendor that the user most likely meant; "" if there is none.
func meant(typed string) string {
	if name := otherNames[typed]; name != "" {
		return name
	}
	return nearest(typed, append(catalog.Names(), providerSim))
}
