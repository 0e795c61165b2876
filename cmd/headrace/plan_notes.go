package main

import (
	"fmt"
	"strings"
	"time"
)

// printNotes says what the figures rest on.
func (s *scheme) printNotes() {
	fmt.Fprintln(s.stdout)
	for _, note := range s.notes() {
		fmt.Fprintf(s.stdout, "- %s\n", note)
	}
}

func (s *scheme) notes() []string {
	notes := []string{
		"tokens in are estimated from the text: give or take 15 % (charged as by " + s.preset.Name + ": --preset)",
		s.outputNote(),
		s.latencyNote(),
	}
	if n := s.tooLarge(); n > 0 {
		notes = append(notes, fmt.Sprintf("%s larger than a minute's limit on tokens: the provider would refuse them", s.atLeast(isAre(n, "item"))))
	}
	if free := s.unlimited(); free != "" {
		notes = append(notes, "no limit is told for "+free+": a run learns it, and may take longer (--rpm, --tpm, --tier)")
	}
	if s.flags.tier != "" {
		notes = append(notes, "limits of "+s.flags.tier+" as collected on "+builtIn().AsOf+": see your account's own")
	}
	notes = append(notes, s.priceNote())
	if s.forecast.Scaled {
		notes = append(notes, "the time is that of a sample of the items, scaled")
	}
	return notes
}

// atLeast bounds from below what was counted in a sample only.
func (s *scheme) atLeast(text string) string {
	if s.forecast.Scaled {
		return "at least " + text
	}
	return text
}

func (s *scheme) outputNote() string {
	text := "an answer is taken to be as long as its line allows"
	if s.assumed > 0 {
		text += fmt.Sprintf("; %s nothing: %s tokens (--output-tokens)", saysSay(s.assumed), thousands(s.flags.answer))
	}
	return text
}

func saysSay(n int) string {
	if n == 1 {
		return "1 line says"
	}
	return thousands(float64(n)) + " lines say"
}

func isAre(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return thousands(float64(n)) + " " + noun + "s are"
}

func (s *scheme) latencyNote() string {
	mean := long(s.latency / time.Duration(s.items))
	if s.flags.latency > 0 {
		return "a call is taken to last " + mean + " in the median (--latency)"
	}
	return "a call is taken to last 0.5 s and 20 ms for each token out, here " + mean + " on average (--latency)"
}

// unlimited names the models for which no limit is told.
func (s *scheme) unlimited() string {
	var names []string
	for _, m := range s.models {
		if m.limits.Zero() {
			names = append(names, shortName(m.name))
		}
	}
	const most = 5
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

func (s *scheme) priceNote() string {
	dated, unknown := false, false
	for _, m := range s.models {
		_, d, ok := s.flags.list.of(m.name)
		dated, unknown = dated || d, unknown || !ok
	}
	text := "prices are yours"
	if dated {
		text = "list prices as collected on " + builtIn().AsOf + ": see your provider's page"
	}
	if unknown {
		text = strings.TrimPrefix(text+"; ", "prices are yours; ") + "prices that are unknown can be told (--price, --prices)"
	}
	return text
}
