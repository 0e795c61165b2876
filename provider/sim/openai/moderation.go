package openai

import (
	"fmt"
	"strconv"

	"github.com/headrace/headrace/provider/sim/face"
)

// defaultModeration is the model of a moderation that names none.
const defaultModeration = "omni-moderation-latest"

// categories lists the categories for which a text may be flagged.
var categories = [...]string{
	"harassment", "harassment/threatening", "hate", "hate/threatening", "illicit", "illicit/violent", "self-harm",
	"self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors", "violence", "violence/graphic",
}

// moderationBody flags nothing. The scores depend on the text, so that they prove which text they
// belong to; all are below a thousandth. It has no usage: a moderation is free.
func (r *request) moderationBody(id string) []byte {
	b := fmt.Appendf(make([]byte, 0, 1536), `{"id":"modr-%s","model":%s,"results":[`, id, face.Quote(r.Model))
	for i, text := range r.Texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"flagged":false,"categories":`...)
		b = eachCategory(b, func(b []byte) []byte { return append(b, "false"...) })
		sum := face.Sum(text)
		b = append(b, `,"category_scores":`...)
		b = eachCategory(b, func(b []byte) []byte {
			sum = face.Mix(sum)
			return strconv.AppendFloat(b, float64(sum>>11)/(1<<53)/1000, 'g', -1, 64)
		})
		b = append(b, `,"category_applied_input_types":`...)
		b = eachCategory(b, func(b []byte) []byte { return append(b, `["text"]`...) })
		b = append(b, '}')
	}
	return append(b, `]}`...)
}

// eachCategory appends an object with a value for each category.
func eachCategory(b []byte, value func([]byte) []byte) []byte {
	for i, name := range categories {
		b = append(append(append(b, "{,"[min(i, 1)]), face.Quote(name)...), ':')
		b = value(b)
	}
	return append(b, '}')
}
