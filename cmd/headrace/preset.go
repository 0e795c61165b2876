package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// costOf estimates what its provider draws for a request when it lets it in. The
// real usage puts it right after the call.
func costOf(p provider.Preset, body []byte) limiter.Cost {
	input, output := p.Charge(body)
	return limiter.Cost{Requests: 1, Input: input, Output: output}
}

// presetAuto leaves the preset to the base URL.
const presetAuto = "auto"

func registerPreset(fs *pflag.FlagSet, to *string) {
	fs.StringVar(to, "preset", presetAuto, "how the provider counts tokens: auto (by the base URL), or "+strings.Join(provider.PresetNames(), ", "))
	nameValues(fs, map[string]string{"preset": "NAME"})
}

func checkPreset(name string) error {
	return oneOf("preset", name, append([]string{presetAuto}, provider.PresetNames()...)...)
}

// providerPreset is what is known of the provider before its first answer.
func (f *runFlags) providerPreset() provider.Preset {
	return presetOf(f.preset, f.provider, f.baseURL)
}

// presetOf lets a name beat the base URL. The simulated provider counts like OpenAI.
func presetOf(preset, name, baseURL string) provider.Preset {
	if preset == presetAuto && name == providerSim {
		baseURL = ""
	}
	return provider.PresetFor(preset, baseURL)
}
