package provider

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/headrace/headrace/provider/rawjson"
)

// Found holds what a dialect's own pass over a good answer has found, as it stands there; nil
// is not there.
type Found struct {
	Usage  []byte // the object in which tokens are counted
	Finish []byte // the string that says why it ended
	ID     []byte // the answer's id, where no header has one
}

// Reply returns the good answer in which that was found.
func (f *Found) Reply(status int, h http.Header, body []byte) Reply {
	reply := Reply{Status: status, RequestID: RequestID(h), Body: body, Finish: finishOf(f.Finish)}
	reply.Usage, reply.HasUsage = UsageIn(f.Usage)
	if reply.RequestID == "" && rawjson.IsString(f.ID) {
		reply.RequestID = clip(string(rawjson.Unquote(f.ID)), maxWord)
	}
	return reply
}

// ObjectIn returns the JSON object in a body, without white space around it; nil if the body is
// anything else, or not JSON.
func ObjectIn(body []byte) []byte {
	if object := rawjson.Trim(body); isObject(object) && rawjson.Valid(object) {
		return object
	}
	return nil
}

// Segment returns a model's name as one segment of a path. Whatever stands in the name, the path
// keeps its segments and its host. All but letters, digits and - . _ ~ is escaped, as signers
// of paths do, and so are the dots of a name that has nothing else.
func Segment(model string) string {
	if model == "." || model == ".." {
		return strings.ReplaceAll(model, ".", "%2E")
	}
	const mark = "+" // what QueryEscape makes of a space, and of nothing else
	return strings.ReplaceAll(url.QueryEscape(model), mark, "%20")
}
