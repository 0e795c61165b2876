package main

import (
	"context"
	"maps"
	"strconv"
	"strings"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/run"
	"github.com/headrace/headrace/internal/command/schema"
	"github.com/headrace/headrace/internal/command/settings"
)

// recordOf makes the record of the job from the flags, for these inputs.
func recordOf(ctx context.Context, s *run.Settings, lines promptfile.Config, inputs []string) (r job.Record, err error) {
	for _, name := range inputs {
		if name == "-" {
			return r, exit.End(exit.Usage, "workers cannot read standard input: name a file that all of them see")
		}
		all, err := node.InputsOf(ctx, name)
		if err != nil {
			return r, exit.EndOf(exit.Usage, err)
		}
		for _, in := range all {
			if err := checkApart(s, in.Name); err != nil {
				return r, err
			}
			in.Format = formatWord(s.Flags.ReaderConfig(in.Name).Format)
			r.Inputs = append(r.Inputs, in)
		}
	}
	r.Output, r.Errors = s.Flags.Output, s.Flags.ErrorsPath()
	r.Reading = readingOf(s, lines)
	r.Asking, err = askingOf(s)
	return r, err
}

// checkApart rejects a job whose files would replace an input: its results would be bought, and could not be written.
func checkApart(s *run.Settings, input string) error {
	for what, path := range map[string]string{"output": s.Flags.Output, "errors file": s.Flags.ErrorsPath()} {
		if journal.SameFile(input, path) {
			return exit.End(exit.Usage, "the %s is the input, %s: choose another file", what, input)
		}
	}
	return nil
}

// formatWord returns the word for a format in the record of a job.
func formatWord(f prompts.Format) string {
	switch f {
	case prompts.FormatCSV:
		return job.CSV
	case prompts.FormatText:
		return job.Text
	case prompts.FormatJSONL:
	}
	return job.JSONL
}

// readingOf returns from the flags how workers read the lines of a job.
func readingOf(s *run.Settings, lines promptfile.Config) job.Reading {
	given := s.Given(settings.Input)
	bad, untranslatable := s.Flags.SkipsBadLines(), s.Flags.SkipsUntranslatable()
	return job.Reading{
		Template: given["template"], System: given["system"], Params: lines.Reader.Params, Model: lines.Reader.DefaultModel, Endpoint: lines.Reader.DefaultEndpoint,
		SkipBad: bad, SkipUntranslatable: untranslatable, MaxTokens: lines.MaxTokens, MaxTokensOfPrompts: lines.MaxTokensOfPrompts,
	}
}

// askingOf returns the provider and settings of a job from the flags, for workers that have no flags of their own.
func askingOf(s *run.Settings) (job.Asking, error) {
	given := s.Given(settings.Vendor)
	a := job.Asking{Provider: given["provider"], BaseURL: withoutUser(given["base-url"]), Settings: maps.Clone(given)}
	maps.Copy(a.Settings, s.Given(settings.Input))
	maps.Copy(a.Settings, s.Bounds())
	if price := s.Given(settings.Costs)["price"]; price != "" {
		a.Settings["price"] = price
	}
	if fleet := s.Flags.Fleet; fleet != nil {
		a.Provider, a.Settings[run.JobLanes] = strings.Join(fleet.Names(), ", "), fleet.Text
	}
	return a, addFileTexts(s, a.Settings)
}

// addFileTexts adds the texts of files that are on this machine, and not where calls are made.
func addFileTexts(s *run.Settings, to map[string]string) error {
	prices, err := s.Flags.PricesOfJob()
	if err != nil {
		return exit.EndOf(exit.Usage, err)
	}
	if prices != "" {
		to[run.JobPrices] = prices
	}
	packed, err := schema.OfJob(s.Flags)
	if packed != "" {
		to[run.JobSchema], to["schema-retries"] = packed, strconv.Itoa(s.Flags.SchemaRetries)
	}
	return err
}

// withoutUser returns an address without its user, to show to people.
func withoutUser(base string) string {
	scheme, rest, found := strings.Cut(base, "://")
	if at := strings.LastIndexByte(rest, '@'); found && at >= 0 {
		return scheme + "://" + rest[at+1:]
	}
	return base
}
