package face

import (
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Prompt holds what every face reads of a request: enough to charge and to answer it.
type Prompt struct {
	Model     string
	Texts     []string // texts to answer: one, or one for each element of an array
	Chars     int      // of all the text that a model would read
	MaxTokens float64  // 0: not said

	Complaint string // not empty: the request is invalid, and why
	Param     string // what the complaint is about
}

// Complain keeps the first complaint.
func (p *Prompt) Complain(param, message string) {
	if p.Complaint == "" {
		p.Param, p.Complaint = param, message
	}
}

// Forget drops the input read so far: JSON keys may come twice, and the last one
// counts, as with most parsers.
func (p *Prompt) Forget() { p.Texts, p.Chars = nil, 0 }

// Add takes in a text that has an answer of its own.
func (p *Prompt) Add(text string) {
	p.Texts = append(p.Texts, text)
	p.Hear(text)
}

// Hear takes in a text that is read and charged, but not answered.
func (p *Prompt) Hear(text string) { p.Chars += utf8.RuneCountInString(text) }

// Turns takes in a conversation: it answers the user's last turn, and reads all. A turn of the
// user's without words, such as the result of a tool, is passed over if another has some.
func (p *Prompt) Turns(turns gjson.Result, parts string) {
	said := false
	turns.ForEach(func(_, turn gjson.Result) bool {
		text := TextOf(turn.Get(parts))
		ofUser := turn.Get("role").Str == "user" && text != ""
		if ofUser || !said {
			p.Texts, said = []string{text}, ofUser
		}
		p.Hear(text)
		return true
	})
}

// TextOf joins the text parts of a content, which is a string or an array of parts.
func TextOf(content gjson.Result) string {
	if !content.IsArray() {
		return content.String()
	}
	var parts []string
	content.ForEach(func(_, part gjson.Result) bool {
		if text := part.Get("text"); text.Exists() {
			parts = append(parts, text.String())
		}
		return true
	})
	return strings.Join(parts, "\n")
}

// Write returns the text that answers one prompt, cut at the bound.
func (p *Prompt) Write(prompt string) (text string, whole bool) {
	text = Answer(prompt)
	if p.MaxTokens == 0 || p.MaxTokens*4 >= float64(len(text)) {
		return text, true
	}
	return text[:int(p.MaxTokens)*4], false
}

// Read returns the input in tokens.
func (p *Prompt) Read() int { return TokensOf(p.Chars) }

// Written returns the output in tokens.
func (p *Prompt) Written() (tokens int) {
	for _, prompt := range p.Texts {
		text, _ := p.Write(prompt)
		tokens += TokensOf(len(text))
	}
	return tokens
}

// First returns the prompt of a request with a single one: "" if there is none.
func (p *Prompt) First() string {
	if len(p.Texts) == 0 {
		return ""
	}
	return p.Texts[0]
}
