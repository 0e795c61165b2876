package gemini

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
	"github.com/headrace/headrace/provider/stream"
)

// StreamPath returns the path of another method of the model, asked for events: otherwise the
// stream would be one long list.
func (d Dialect) StreamPath(operation, model string) (string, bool) {
	if operation != provider.GenerateContent {
		return "", false
	}
	path, _ := d.Path(operation, model)
	return strings.TrimSuffix(path, provider.GenerateContent) + ":streamGenerateContent?alt=sse", true
}

// StreamBody returns the body itself: the path asks for the stream.
func (Dialect) StreamBody(_ string, body []byte, _ bool) []byte { return body }

// Stream puts an answer together.
func (Dialect) Stream(string) (stream.Splitter, stream.Assembler) {
	return new(stream.SSE), new(chunks)
}

// chunks puts together an answer whose every event is an answer by itself, with some of the parts.
// No event is the last: the stream ends with its bytes, once all candidates say why they ended.
type chunks struct {
	stream.Builder
	top        stream.Value // all members but the candidates
	candidates []*candidate
	fault      []byte // an error in place of the rest
}

// candidate is a candidate. Parts are joined only if nothing but their texts tells them apart.
type candidate struct {
	index   float64
	rest    stream.Value // all members but the content
	content stream.Value // all members but the parts
	parts   []*stream.Value
	thought bool // the last part is a thought
	open    bool // the last part is text alone: more may follow
}

// Bounds of what an answer may have.
const (
	maxCandidates = 64
	maxParts      = 1 << 16
)

// Errors of chunks that cannot be.
var (
	errAfterEnd = errors.New("a candidate goes on after its end")
	errTooMany  = errors.New("there are too many candidates or parts")
	errShape    = errors.New("a chunk has a part of another kind than is known")
)

// Add adds a chunk, or keeps the error that comes in place of one.
func (c *chunks) Add(e stream.Event) (last bool, err error) {
	object, err := stream.Object(e)
	if err != nil {
		return false, err
	}
	if fault := rawjson.Lookup(object, "error"); !rawjson.IsNull(fault) {
		c.fault = append(append([]byte(`{"error":`), fault...), '}')
		return true, nil
	}
	for w := rawjson.WalkIn(object); w.Next(); {
		value := w.Skip()
		if string(w.Name) != "candidates" {
			c.Update(c.Member(&c.top, w.Name), value)
			continue
		}
		for in := rawjson.WalkIn(value); in.Next(); {
			c.addCandidate(in.Skip())
		}
	}
	return false, c.Err()
}

// addCandidate adds a piece of a candidate. Log probabilities grow as the content does; of other
// members the latest value counts. The piece that gives the reason for the end may also have words.
func (c *chunks) addCandidate(piece []byte) {
	if !rawjson.IsObject(piece) {
		c.Fail(errShape)
		return
	}
	target := c.candidateAt(rawjson.Number(rawjson.Lookup(piece, "index")))
	if target == nil {
		return
	}
	ended := target.hasEnd()
	for w := rawjson.WalkIn(piece); w.Next(); {
		switch value := w.Skip(); string(w.Name) {
		case "content":
			c.addContent(target, value, ended)
		case "logprobsResult":
			c.Merge(c.Member(&target.rest, w.Name), value, func([]byte) bool { return false })
		default:
			c.Update(c.Member(&target.rest, w.Name), value)
		}
	}
}

// candidateAt returns the candidate with that index, a new one if there is none. It returns nil, and
// notes the fault, if there are too many.
func (c *chunks) candidateAt(index float64) *candidate {
	for _, found := range c.candidates {
		if found.index == index { //nolint:gocritic // identity: both are as the server wrote them
			return found
		}
	}
	if len(c.candidates) == maxCandidates {
		c.Fail(errTooMany)
		return nil
	}
	found := &candidate{index: index}
	c.candidates = append(c.candidates, found)
	return found
}

func (g *candidate) hasEnd() bool {
	end := g.rest.Find("finishReason")
	return end != nil && !end.IsNull()
}

// addContent adds a piece of content. After its end a candidate may only get empty texts.
func (c *chunks) addContent(target *candidate, content []byte, ended bool) {
	for w := rawjson.WalkIn(content); w.Next(); {
		value := w.Skip()
		if string(w.Name) != "parts" {
			c.Update(c.Member(&target.content, w.Name), value)
			continue
		}
		for in := rawjson.WalkIn(value); in.Next(); {
			part := in.Skip()
			if ended && len(rawjson.Lookup(part, "text")) != len(`""`) {
				c.Fail(errAfterEnd)
			}
			c.addPart(target, part)
		}
	}
}

// addPart adds a part. A part with more than a text, such as a signature, stands by itself: Google
// asks that nothing be joined to it.
func (c *chunks) addPart(target *candidate, part []byte) {
	var text []byte
	isThought, hasOther := false, false
	for w := rawjson.WalkIn(part); w.Next(); {
		switch value := w.Skip(); string(w.Name) {
		case "text":
			text = value
		case "thought":
			isThought = string(value) == "true"
		default:
			hasOther = true
		}
	}
	isText := rawjson.IsString(text) && !hasOther
	if isText && target.open && target.thought == isThought {
		c.Append(c.Member(target.parts[len(target.parts)-1], []byte("text")), text)
		return
	}
	if !rawjson.IsObject(part) || len(target.parts) == maxParts {
		c.Fail(errTooMany)
		return
	}
	newPart := new(stream.Value)
	c.Open(newPart, part)
	target.parts, target.open, target.thought = append(target.parts, newPart), isText, isThought
}

// Body returns the answer, with its candidates in order. An answer without candidates is whole if
// it says why: the prompt was blocked.
func (c *chunks) Body() ([]byte, error) {
	if c.fault != nil {
		return nil, &stream.Fault{Body: c.fault}
	}
	if len(c.candidates) == 0 {
		if c.top.Find("promptFeedback") == nil {
			return nil, stream.ErrUnended
		}
		return c.top.AppendTo(nil), nil
	}
	slices.SortStableFunc(c.candidates, func(a, b *candidate) int { return int(a.index - b.index) })
	list := append(make([]byte, 0, c.Size()), '[')
	for i, each := range c.candidates {
		if !each.hasEnd() {
			return nil, stream.ErrUnended
		}
		if i > 0 {
			list = append(list, ',')
		}
		list = each.appendTo(list)
	}
	return c.top.AppendWith(make([]byte, 0, len(list)+512), "candidates", append(list, ']')), nil
}

// appendTo appends the candidate. One that got no content, such as a blocked one, has no member
// content.
func (g *candidate) appendTo(dst []byte) []byte {
	if !g.content.IsSet() && len(g.parts) == 0 {
		return g.rest.AppendTo(dst)
	}
	content := g.content.AppendTo(nil)
	if len(g.parts) > 0 {
		var parts [][]byte
		for _, part := range g.parts {
			parts = append(parts, part.AppendTo(nil))
		}
		list := append(append([]byte{'['}, bytes.Join(parts, []byte{','})...), ']')
		content = g.content.AppendWith(nil, "parts", list)
	}
	return g.rest.AppendWith(dst, "content", content)
}

// Usage returns the counts so far.
func (c *chunks) Usage() []byte {
	if usage := c.top.Find("usageMetadata"); usage != nil && !usage.IsNull() {
		return usage.AppendTo(nil)
	}
	return nil
}
