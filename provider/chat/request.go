package chat

import "strconv"

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
