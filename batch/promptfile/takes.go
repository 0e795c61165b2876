package promptfile

import (
	"errors"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider"
)

// Asks returns the request that a provider's client gets for a request of this job's input.
// A Reader.Takes can thus decide about the same request that is sent later.
func (c *Config) Asks(r *prompts.Request) provider.Request { return asks(r, c.boundOf(r)) }

func asks(r *prompts.Request, maxTokens int) provider.Request {
	return provider.Request{Endpoint: r.Endpoint, Model: r.Model, Body: r.Body, MaxTokens: maxTokens}
}

// boundOf returns the bound on output for a request without one of its own.
func (c *Config) boundOf(r *prompts.Request) int {
	if r.Form.IsPrompt() {
		return c.MaxTokensOfPrompts
	}
	return c.MaxTokens
}

// skips reports whether a bad line goes to the errors file, rather than ending the run.
func (c *Config) skips(bad *prompts.LineError) bool {
	if errors.Is(bad, prompts.ErrUntranslatable) {
		return c.SkipUntranslatable
	}
	return c.SkipBad
}

// takes returns Reader.Takes for the pass that checks the input, and for the only pass of a
// stream. It asks only about requests that no earlier run has ended. It remembers the
// refused lines of a file.
func (j *Job) takes() func(*prompts.Request) error {
	ask := j.cfg.Reader.Takes
	if ask == nil {
		return nil
	}
	return func(r *prompts.Request) error {
		if j.past.of(r.Key) != notEnded {
			return nil
		}
		err := ask(r)
		if err != nil && !j.cfg.Input.Stream {
			j.refused.add(r.Line)
		}
		return err
	}
}

// takesAgain returns Reader.Takes for later passes over a checked input. It asks again only
// about lines that were refused, to say why.
func (j *Job) takesAgain() func(*prompts.Request) error {
	if j.refused.bits == nil {
		return nil
	}
	return func(r *prompts.Request) error {
		if !j.refused.has(r.Line) {
			return nil
		}
		return j.cfg.Reader.Takes(r)
	}
}

// lineSet is a set of line numbers: a bit for each line up to the last one in it.
type lineSet struct{ bits []uint64 }

func (s *lineSet) add(line int) {
	for len(s.bits) <= line/64 {
		s.bits = append(s.bits, 0)
	}
	s.bits[line/64] |= 1 << (line % 64)
}

func (s *lineSet) has(line int) bool {
	return line/64 < len(s.bits) && s.bits[line/64]&(1<<(line%64)) != 0
}
