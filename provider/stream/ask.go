package stream

import "github.com/headrace/headrace/provider/rawjson"

// counted asks for usage at the end of a stream.
const (
	optionsName = "stream_options"
	countName   = "include_usage"
)

// Ask turns a request's body, an object that asks for no stream, into one that does. With counts
// it also asks for the usage at the end, as OpenAI's chats must. A body that is no object stays
// as it is. It never changes body.
func Ask(body []byte, counts bool) []byte {
	object := rawjson.Trim(body)
	if !rawjson.IsObject(object) {
		return body
	}
	out := append(make([]byte, 0, len(object)+64), `{"stream":true`...)
	for _, m := range rawjson.Members(object, nil) {
		switch name := string(m.Name); {
		case name == "stream":
		case name == optionsName && counts:
			out = appendOptions(append(out, ','), m.Value)
			counts = false
		default:
			out = append(append(out, ','), m.Raw...)
		}
	}
	if counts {
		out = appendOptions(append(out, ','), nil)
	}
	return append(out, '}')
}

// appendOptions appends a stream's options, with those that the body already has.
func appendOptions(out, told []byte) []byte {
	out = append(out, `"`+optionsName+`":{"`+countName+`":true`...)
	for w := rawjson.WalkIn(told); w.Next(); {
		if name, value := w.Name, w.Skip(); rawjson.IsObject(told) && string(name) != countName {
			out = append(append(rawjson.AppendString(append(out, ','), string(name)), ':'), value...)
		}
	}
	return append(out, '}')
}
