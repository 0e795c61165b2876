package chat

import (
	"strconv"

	"github.com/headrace/headrace/provider"
)

// Embeddings holds the contents of a body for OpenAI's embeddings. Its slices point into the body.
type Embeddings struct {
	Inputs     [][]byte // strings as they stand, none of them empty; at least one
	Dimensions int      // 1 to MaxInt32; 0 is the model's own number
	// InputType is the string that says what the texts are for, which OpenAI does not have and
	// Cohere demands; nil: the body has none.
	InputType []byte

	dialect string
	listed  bool // the inputs stood in a list
}

// embeddingFields lists the fields of a body for embeddings that OpenAI's API knows, and input_type.
var embeddingFields = []string{"input", "model", "dimensions", "encoding_format", "user", "input_type"}

// ReadEmbeddings reads a body for embeddings in the way in which Read reads a chat, and as
// strictly. Vectors are lists of numbers: another encoding_format is refused, and so is input of
// token ids.
func ReadEmbeddings(dialect string, body []byte) (*Embeddings, error) {
	e := &Embeddings{dialect: dialect}
	if refused := e.read(body); refused != nil {
		return nil, e.Refuse(refused.field, refused.why)
	}
	return e, nil
}

func (e *Embeddings) read(body []byte) *refusal {
	if refused := bodyOf(body, embeddingFields, e.field); refused != nil {
		return refused
	}
	if len(e.Inputs) == 0 {
		return refuse("is missing").in("input")
	}
	return nil
}

// field takes a field that is not null.
func (e *Embeddings) field(name string, value []byte) *refusal {
	switch name {
	case "input":
		if e.listed = value[0] == '['; e.listed {
			return list(value, func(_ int, value []byte) *refusal { return e.input(value) })
		}
		return e.input(value)
	case "model":
		var model []byte
		return text(&model, value)
	case "dimensions":
		return count(&e.Dimensions, value)
	case "encoding_format":
		return only(value, `"float"`)
	case "input_type":
		return text(&e.InputType, value)
	}
	return refuse("has no counterpart")
}

func (e *Embeddings) input(value []byte) *refusal {
	var input []byte
	refused := text(&input, value)
	e.Inputs = append(e.Inputs, input)
	return refused
}

// Refuse returns the error for a field that has no exact counterpart in the dialect.
func (e *Embeddings) Refuse(field, why string) error {
	return &provider.Untranslatable{Dialect: e.dialect, Field: field, Why: why}
}

// AtMost refuses more texts than one call may carry.
func (e *Embeddings) AtMost(n int) error {
	if len(e.Inputs) <= n {
		return nil
	}
	texts := " texts"
	if n == 1 {
		texts = " text"
	}
	return e.Refuse("input", "has more than "+strconv.Itoa(n)+texts)
}
