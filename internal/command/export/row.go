package export

import (
	"bytes"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/all"
	"github.com/headrace/headrace/provider/rawjson"
)

// A value is what stands in a cell: JSON, or text. The zero value is an empty cell.
type value struct {
	json []byte
	text string
	kind kind
}

type kind uint8

const (
	missing kind = iota
	isJSON
	isText
)

func jsonValue(text []byte) value {
	if rawjson.IsNull(text) {
		return value{}
	}
	return value{json: text, kind: isJSON}
}

func textValue(text string) value { return value{text: text, kind: isText} }

// A row is an item, in the parts that columns show.
type row struct {
	record *journal.Record
	// Of the line; nil: there is none.
	id, response, fault []byte
	// Of what headrace adds:
	own owned

	input []byte // the item's line in the input; nil without --join

	bodyKnown    bool // body, text and finish are known
	body         []byte
	text, finish value

	answerParser rawjson.Parser
	answerKnown  bool // answer is known
	answer       []byte
	scratch      []byte
}

// owned are members of what headrace adds.
type owned struct {
	line, file, fileLine, key, attempts, lane, model, served, provider, simulated, finish, usage, cost, queued, waited, latency, metadata, text []byte
}

// set makes r the row of a record.
func (r *row) set(record *journal.Record) {
	r.record, r.bodyKnown, r.answerKnown, r.input = record, false, false, nil
	r.id, r.response, r.fault, r.own = nil, nil, nil, owned{}
	for _, m := range record.Members {
		switch string(m.Name) {
		case "custom_id":
			r.id = m.Value
		case "response":
			r.response = m.Value
		case "error":
			r.fault = m.Value
		}
	}
	for _, m := range record.Headrace {
		if into := r.own.member(string(m.Name)); into != nil {
			*into = m.Value
		}
	}
}

// member returns a pointer to the member of that name; nil if no column shows it.
func (o *owned) member(name string) *[]byte {
	switch name {
	case "line":
		return &o.line
	case "file":
		return &o.file
	case "file_line":
		return &o.fileLine
	case "key":
		return &o.key
	case "attempts":
		return &o.attempts
	case "lane":
		return &o.lane
	case "model":
		return &o.model
	case "served":
		return &o.served
	case "provider":
		return &o.provider
	case "simulated":
		return &o.simulated
	case "finish":
		return &o.finish
	case "usage":
		return &o.usage
	case "cost_usd":
		return &o.cost
	case "queued_ms":
		return &o.queued
	case "waited_ms":
		return &o.waited
	case "latency_ms":
		return &o.latency
	case "metadata":
		return &o.metadata
	case "text":
		return &o.text
	}
	return nil
}

// readBody finds the body, the words of the answer, and the reason for its end. A failed item has only a body.
func (r *row) readBody() {
	if r.bodyKnown {
		return
	}
	r.bodyKnown, r.body, r.text, r.finish = true, nil, value{}, value{}
	var found ending
	for w := rawjson.WalkIn(r.response); w.Next(); {
		if string(w.Name) != "body" {
			w.Skip()
			continue
		}
		ahead := w.Ahead()
		if body := w.Into(); rawjson.IsObject(ahead) {
			found.read(&body)
			w.Leave(&body)
		} else {
			w.Skip()
		}
		r.body = ahead[:len(ahead)-len(w.Ahead())]
	}
	if r.record.Failed {
		return
	}
	switch {
	case r.own.text != nil:
		r.text = jsonValue(r.own.text)
	case found.text != nil:
		r.text = jsonValue(found.text)
	case found.dialect != "":
		if speaks, ok := all.Named(found.dialect); ok {
			if words, has := speaks.Dialect.Text(r.body); has {
				r.text = textValue(words)
			}
		}
	}
	if r.own.finish != nil {
		r.finish = jsonValue(r.own.finish)
	} else if end := provider.EndOf(string(found.why)); end != "" {
		r.finish = textValue(string(end))
	}
}

// An ending is what one way through a body shows: its dialect, by the names of its members, and the
// vendor's word for why the answer ended. If the words of the answer stand in one place of a chat's
// first choice, text is them, quoted: that saves the dialect a second way through the body.
type ending struct {
	text, why []byte
	dialect   string
}

// read notes the dialect of a body by the names of its members, and the reason why the answer ended.
func (e *ending) read(w *rawjson.Walk) {
	for w.Next() {
		if string(w.Name) == "choices" && w.Ahead()[0] == '[' {
			e.dialect = "openai"
			list := w.Into()
			e.readChoices(&list)
			w.Leave(&list)
			continue
		}
		v := w.Skip()
		switch string(w.Name) {
		case "content":
			e.dialect = "openai" // it reads Anthropic's messages, too
		case "output":
			if e.dialect = "openai"; rawjson.IsObject(v) {
				e.dialect = "converse"
			}
		case "candidates":
			e.dialect, e.why = "gemini", stringContents(rawjson.Lookup(rawjson.First(v), "finishReason"))
		case "stop_reason", "stopReason":
			e.why = stringContents(v)
		case "status":
			if rawjson.IsWord(v, "completed") {
				e.why = stringContents(v)
			}
		case "incomplete_details":
			if reason := stringContents(rawjson.Lookup(v, "reason")); reason != nil {
				e.why = reason
			}
		}
	}
}

// readChoices reads the first choice, and passes over the others.
func (e *ending) readChoices(list *rawjson.Walk) {
	for first := true; list.Next(); first = false {
		if !first || list.Ahead()[0] != '{' {
			list.Skip()
			continue
		}
		choice := list.Into()
		for choice.Next() {
			switch {
			case string(choice.Name) == "message" && choice.Ahead()[0] == '{':
				message := choice.Into()
				e.readMessage(&message)
				choice.Leave(&message)
			case string(choice.Name) == "finish_reason":
				e.why = stringContents(choice.Skip())
			default:
				choice.Skip()
			}
		}
		list.Leave(&choice)
	}
}

// readMessage keeps the content of a message, if it is a string that is not empty.
func (e *ending) readMessage(message *rawjson.Walk) {
	for message.Next() {
		v := message.Skip()
		if string(message.Name) == "content" && len(v) > len(`""`) && rawjson.IsString(v) {
			e.text = v
		}
	}
}

// stringContents returns the contents of a JSON string; nil for any other value.
func stringContents(v []byte) []byte {
	if !rawjson.IsString(v) {
		return nil
	}
	return rawjson.Unquote(v)
}

// answerJSON returns the answer if it is a JSON object, also within a fence of Markdown; nil otherwise.
func (r *row) answerJSON() []byte {
	if r.answerKnown {
		return r.answer
	}
	r.readBody()
	r.answerKnown, r.answer = true, nil
	switch r.text.kind {
	case missing:
		return nil
	case isText:
		r.scratch = append(r.scratch[:0], r.text.text...)
	case isJSON:
		r.scratch = r.text.appendContents(r.scratch[:0])
	}
	text := unfenced(rawjson.Trim(r.scratch))
	if rawjson.IsObject(text) && r.answerParser.Parse(text) {
		r.answer = text
	}
	return r.answer
}

// fence opens and closes a block of code in Markdown.
var fence = []byte("```")

// unfenced returns the contents of a block of code in Markdown, or the text itself if it is none.
func unfenced(text []byte) []byte {
	inner, opened := bytes.CutPrefix(text, fence)
	inner, closed := bytes.CutSuffix(inner, fence)
	begins := bytes.IndexByte(inner, '\n')
	if !opened || !closed || begins < 0 {
		return text
	}
	return rawjson.Trim(inner[begins:])
}
