package chat

import (
	"strconv"

	"github.com/headrace/headrace/provider"
)

// A Request holds the contents of a chat body. Its slices point into the body; nil means that the
// body does not have the field. Strings are JSON strings as they stand, with quotes and escapes.
type Request struct {
	Model  []byte // a string
	System []Part // system and developer messages, which stand at the beginning
	// Turns begin and end with the user's. Neighbours may be of one role.
	Turns []Turn

	MaxTokens   int      // bounds the output, in tokens: 1 to MaxInt32; 0 is no bound
	Temperature []byte   // a number from 0 to 2
	TopP        []byte   // a number from 0 to 1
	Seed        []byte   // a whole number that fits into 64 bits
	Stop        [][]byte // strings at which the answer ends, none of them empty

	User   []byte  // a string that stands for the caller's own user
	Effort string  // how much the model is to think: a word of OpenAI's; "" is its default
	Format *Format // nil: text
	Tools  []Tool
	Choice Choice
	// ChoiceName is the string that names the tool to be used, of ChoiceNamed.
	ChoiceName []byte
	// OneCall says that at most one tool may be used at a time.
	OneCall bool

	dialect    string
	stopListed bool // Stop stood in a list
}

// LeaveOutOnes leaves out a temperature and a top_p of 1, for models that use 1 by default and
// take at most one of the two.
func (r *Request) LeaveOutOnes() {
	if isOne(r.Temperature) {
		r.Temperature = nil
	}
	if isOne(r.TopP) {
		r.TopP = nil
	}
}

// A Turn is the part of one side before the other side's next one.
type Turn struct {
	Role  Role
	Parts []Part // at least one
}

// A Role is a side of the conversation.
type Role uint8

// The sides.
const (
	User      Role = iota // also results of tools
	Assistant             // the model
)

// A Part is a piece of a turn.
type Part struct {
	Kind  Kind
	Media Media
	// Text is the string of a Text, a Link or a Result; the data of an Image or a Document,
	// base64 without quotes, where a slash may be escaped; the input of a Call, a JSON object.
	Text []byte
	Tool *ToolUse // of a Call or a Result
	Name []byte   // the string that names a Document; nil if it has no name

	message, index int // where it stands; index is -1 if it is the whole content
}

// A Kind says what a part is.
type Kind uint8

// The kinds.
const (
	Text     Kind = iota
	Image         // in what a user says
	Link          // an image at an address of the web, which begins with https://
	Document      // a PDF in what a user says
	Call          // of a tool, in what the model says
	Result        // of a call, in a turn of the user's
)

// A ToolUse ties a call of a tool to what the tool gave back. ID and Name are strings of
// letters, digits, _ and -, in their quotes; a Result has the Name of its call.
type ToolUse struct {
	ID, Name []byte
	Parts    []Part // of a Result that came in parts of text, and has no Text
}

// A Media is the format of an image.
type Media uint8

// The media that OpenAI takes.
const (
	PNG Media = iota + 1
	JPEG
	WebP
	GIF
)

// String returns the subtype of the media type: "png" of image/png.
func (m Media) String() string { return [...]string{"", "png", "jpeg", "webp", "gif"}[m] }

// A Format is a schema to which the answer is held. Name and Description are strings;
// Description is nil if it has none. Without a Schema the answer is any JSON.
type Format struct{ Name, Description, Schema []byte }

// A Tool is a function that the model may call. Name and Description are strings, Parameters
// is a schema of an object, nil where the function takes none.
type Tool struct {
	Name, Description, Parameters []byte
	Strict                        bool // calls are held to the schema
}

// A Choice says whether tools are to be used.
type Choice uint8

// The choices.
const (
	ChoiceAuto  Choice = iota // as the model likes
	ChoiceNone                // none of them
	ChoiceAny                 // at least one
	ChoiceNamed               // the one that ChoiceName names
)

// Place returns the place of a part of a message's content: the index of the message, and the
// part's index in it, both from 0.
func (p *Part) Place() (message, index int) { return p.message, max(p.index, 0) }

// path returns a part's path in the body.
func (p *Part) path() string {
	at := "messages[" + strconv.Itoa(p.message) + "]"
	switch {
	case p.Kind == Call:
		return at + ".tool_calls[" + strconv.Itoa(p.index) + "]"
	case p.index < 0:
		return at + ".content"
	}
	return at + ".content[" + strconv.Itoa(p.index) + "]"
}

// A refusal says which part of a body is refused, and why: field is a path from where it was found.
type refusal struct{ field, why string }

func refuse(why string) *refusal { return &refusal{why: why} }

// in puts the place of the refused part before its path: a name, or an index.
func (r *refusal) in(outer string) *refusal {
	if r == nil {
		return nil
	}
	if r.field != "" && r.field[0] != '[' {
		outer += "."
	}
	r.field = outer + r.field
	return r
}

func (r *refusal) at(i int) *refusal {
	if r == nil {
		return nil
	}
	return r.in("[" + strconv.Itoa(i) + "]")
}

// maxName bounds the part of a name that is shown, in bytes: anybody may have written it.
const maxName = 64

// quotedName returns a name as it stands in a path of a refusal. A name stands in quotes, with escapes,
// if it could be taken for another part of the path or does harm on a terminal.
func quotedName(name []byte) string {
	name = name[:min(len(name), maxName)]
	for _, c := range name {
		if c != '_' && c != '-' && c != '$' && (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			return strconv.QuoteToASCII(string(name))
		}
	}
	if len(name) == 0 {
		return `""`
	}
	return string(name)
}

// Refuse returns the error for a field that has no exact counterpart in the dialect.
func (r *Request) Refuse(field, why string) error {
	return &provider.Untranslatable{Dialect: r.dialect, Field: field, Why: why}
}

// RefusePart is Refuse for a field of a part of the conversation; "" is the part itself.
func (r *Request) RefusePart(p *Part, field, why string) error {
	at := p.path()
	if field != "" {
		at += "." + field
	}
	return r.Refuse(at, why)
}

// NoEffort refuses a request that says how much the model is to think, for dialects whose makers document no
// counterpart of OpenAI's words.
func (r *Request) NoEffort() error {
	if r.Effort == "" {
		return nil
	}
	return r.Refuse("reasoning_effort", "has no counterpart")
}

// NoFreeJSON refuses a request for JSON without a schema, for dialects that need one.
func (r *Request) NoFreeJSON() error {
	if r.Format == nil || r.Format.Schema != nil {
		return nil
	}
	return r.Refuse("response_format.type", "is json_object, which has no counterpart; json_schema has one")
}

// NoBlankStop refuses stops that are white space and nothing else, for dialects whose
// providers refuse them.
func (r *Request) NoBlankStop() error {
	for i, stop := range r.Stop {
		if !Blank(stop) {
			continue
		}
		field := "stop"
		if r.stopListed {
			field += "[" + strconv.Itoa(i) + "]"
		}
		return r.Refuse(field, "is white space and nothing else")
	}
	return nil
}

// NeedParameters refuses tools without a schema, for dialects that demand one.
func (r *Request) NeedParameters() error {
	for i, tool := range r.Tools {
		if tool.Parameters == nil {
			return r.Refuse("tools["+strconv.Itoa(i)+"].function.parameters", "is missing, and a schema is demanded")
		}
	}
	return nil
}

// NoBlankText refuses text that is white space and nothing else, for dialects whose
// providers refuse it.
func (r *Request) NoBlankText() error {
	if err := r.noBlank(r.System); err != nil {
		return err
	}
	for _, turn := range r.Turns {
		if err := r.noBlank(turn.Parts); err != nil {
			return err
		}
	}
	return nil
}

// noBlank refuses the first text that is blank, also within the results of tools.
func (r *Request) noBlank(parts []Part) error {
	for i := range parts {
		p := &parts[i]
		if p.Tool != nil {
			if err := r.noBlank(p.Tool.Parts); err != nil {
				return err
			}
		}
		if p.Kind != Text || !Blank(p.Text) {
			continue
		}
		field := "text"
		if p.index < 0 { // the text is the whole content
			field = ""
		}
		return r.RefusePart(p, field, "is white space and nothing else")
	}
	return nil
}
