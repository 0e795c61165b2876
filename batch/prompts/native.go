package prompts

import (
	"slices"

	"github.com/headrace/headrace/provider/rawjson"
)

// notConverse are fields of InvokeModel bodies that Converse bodies do not have. They
// belong to Claude; Titan; Llama, Mistral and others; Nova; and models that take OpenAI's
// shape.
var notConverse = []string{"anthropic_version", "inputText", "prompt", "schemaVersion", "max_tokens", "max_completion_tokens"}

// buildRequest takes the request of a Gemini batch line as it stands, byte for byte.
func (r *Reader) buildRequest(req *Request, f *fields) *LineError {
	req.Endpoint = GenerateContent
	return r.buildNative(req, f, "request", f.request, "contents")
}

// buildModelInput takes the modelInput of a Bedrock batch line as it stands, byte for byte.
// It must be what Converse takes: a body for InvokeModel suits only one model.
func (r *Reader) buildModelInput(req *Request, f *fields) *LineError {
	req.Endpoint = Converse
	for w := rawjson.WalkIn(f.modelInput); w.Next(); w.Skip() {
		if slices.Contains(notConverse, string(w.Name)) {
			return complain(ErrUnsupported, "write it as Converse takes it: messages with blocks of content, bounds and temperature in inferenceConfig",
				"modelInput has %q, so it is a body of InvokeModel", w.Name)
		}
	}
	return r.buildNative(req, f, "modelInput", f.modelInput, "messages")
}

// buildNative takes a body as it stands. The body names no model: the URL does. The line
// may name one next to it, else the default counts. asks is the field of the question.
func (r *Reader) buildNative(req *Request, f *fields, name string, body []byte, asks string) (c *LineError) {
	if body[0] != '{' {
		return complain(ErrShape, adviceFix, "%s is %s, not an object", name, rawjson.KindOf(body))
	}
	if len(r.cfg.Params) > 0 {
		return complain(ErrUnsupported, "write it into "+name+", or run such lines by themselves",
			"%s is set for all lines, and a %s has its parameters elsewhere", r.cfg.Params[0].Name, req.Form)
	}
	asked := 0
	r.body = rawjson.Members(body, r.body[:0])
	for _, m := range r.body {
		switch string(m.Name) {
		case "model", "modelId":
			return complain(ErrShape, "remove it, and put the model next to "+name+" or for all lines",
				"%s has %q, but the model belongs in the URL", name, m.Name)
		case asks:
			asked++
		}
	}
	switch asked {
	case 0:
		return complain(ErrShape, adviceFix, "%s has no %s", name, asks)
	case 1:
	default:
		return complain(ErrShape, adviceFix, "field %q appears twice", asks)
	}
	if req.Model, _, c = r.model(f); c != nil {
		return c
	}
	req.Body = r.own(body)
	return nil
}
