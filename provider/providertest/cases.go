package providertest

import (
	"bufio"
	"bytes"
	"embed"
	"fmt"
	"net/http"
	"net/textproto"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headrace/headrace/provider"
)

//go:embed testdata/*.http
var recordings embed.FS

// Case is one recorded answer and what it means.
type Case struct {
	// Name is the recording's file name without its ending.
	Name string
	// Dialect is the dialect whose own words the answer uses, "" if everybody understands it. Clients
	// of another dialect read it otherwise, or not at all.
	Dialect string
	// Status, Header and Body are the answer. Status is 0 if the bytes are no
	// HTTP answer at all.
	Status int
	Header http.Header
	Body   []byte
	// Whole is false if the connection breaks off in the answer, which only a
	// client can notice.
	Whole bool
	// Fine is true for a good answer; then there is no error and Kind says nothing.
	Fine bool
	Kind provider.Kind
	// RetryAfter is expected if HasRetryAfter, and otherwise none is.
	RetryAfter    time.Duration
	HasRetryAfter bool
	Slow, Unclear bool
	// Code and RequestID are expected if not "".
	Code, RequestID string
	// Limits is the number of rate limits in the headers; −1 if that is not of
	// interest here.
	Limits int
	// Says is a part of the error's text that a person must read.
	Says string
	// Note and Usage are expected if not nil, Finish if not "".
	Note   *provider.QuotaNote
	Usage  *provider.Usage
	Finish string
	// End is the meaning of Finish, and Text the words of the answer, if Dialect is set. Text is
	// nil if it is not of interest, and "" if the answer has no words.
	End  provider.End
	Text *string
	// Mark is the kind with which Finish marks a good answer, Unknown if it does not.
	Mark provider.Kind
	// Source says where the answer was found.
	Source Source
	// Also names other doors of the same vendor that give the same answer.
	Also []string

	raw []byte
}

// Source is the origin of a recording. The zero value is for a recording that names none.
type Source struct {
	// How is Documented, SecondHand or Stated.
	How string
	// Where is an address, or a repository and a file in it.
	Where string
}

// How a recording was found.
const (
	Documented = "documented"  // the maker's page or source shows the answer, or its status and words
	SecondHand = "second-hand" // others have recorded or quoted it
	Stated     = "stated"      // the maker says whose shape it has, or its status alone, and that is what it shows
)

// Cases returns all recordings, in the order of their names. It panics if one
// does not parse, as no test could do anything about that.
func Cases() []Case { return casesIn(recordings, "testdata") }

// casesIn parses the recordings in a folder, in the order of their names. It panics at the first
// one that does not parse.
func casesIn(files embed.FS, folder string) []Case {
	entries, err := files.ReadDir(folder)
	if err != nil {
		panic(err)
	}
	cases := make([]Case, 0, len(entries))
	for _, entry := range entries {
		data, err := files.ReadFile(path.Join(folder, entry.Name()))
		if err != nil {
			panic(err)
		}
		c, err := parse(strings.TrimSuffix(entry.Name(), ".http"), data)
		if err != nil {
			panic(fmt.Sprintf("providertest: %s: %v", entry.Name(), err))
		}
		cases = append(cases, c)
	}
	return cases
}

// How a recording is put on the wire.
const (
	framingLength   = ""          // whole, with its true Content-Length
	framingAsItIs   = "as it is"  // nothing added, then the connection ends
	framingCutChunk = "cut chunk" // a chunk without the one that ends the body
)

// parse reads a recording: expectations behind "# ", then the answer.
func parse(name string, data []byte) (Case, error) {
	c := Case{Name: name, Limits: -1, Whole: true}
	framing := framingLength
	for bytes.HasPrefix(data, []byte("# ")) {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		key, value, _ := strings.Cut(string(line[2:]), ": ")
		if key == "framing" {
			framing, c.Whole = value, false
			continue
		}
		if err := c.setExpectation(key, value); err != nil {
			return c, fmt.Errorf("%s: %w", key, err)
		}
	}
	return c, c.parseAnswer(data, framing)
}

// setExpectation sets the expectation that one line of a recording states.
func (c *Case) setExpectation(key, value string) (err error) {
	switch key {
	case "kind":
		c.Kind, c.Fine, err = kindOf(value)
	case "retry-after":
		c.HasRetryAfter = true
		c.RetryAfter, err = time.ParseDuration(value)
	case "slow":
		c.Slow = true
	case "unclear":
		c.Unclear = true
	case "code":
		c.Code = value
	case "request-id":
		c.RequestID = value
	case "limits":
		c.Limits, err = strconv.Atoi(value)
	case "status":
		c.Status, err = strconv.Atoi(value)
	case "says":
		c.Says = value
	case "dialect":
		c.Dialect = value
	case "end":
		c.End = provider.End(value)
	case "text":
		c.Text = new(string)
		*c.Text, err = strconv.Unquote(value)
	case "finish":
		c.Finish = value
	case "mark":
		c.Mark, _, err = kindOf(value)
	case "usage":
		c.Usage = new(provider.Usage)
		u := c.Usage
		_, err = fmt.Sscanf(value, "%d/%d/%d/%d/%d", &u.InputTokens, &u.OutputTokens, &u.CachedTokens, &u.CacheWriteTokens, &u.ReasoningTokens)
	case "told": // picodollars, behind the usage
		c.Usage.HasTold = true
		c.Usage.Told, err = strconv.ParseInt(value, 10, 64)
	case "long": // behind the usage, too
		c.Usage.LongWriteTokens, err = strconv.ParseInt(value, 10, 64)
	case "note":
		c.Note, err = noteOf(value)
	case "source":
		c.Source, err = sourceOf(value)
	case "also":
		c.Also = strings.Fields(value)
	default:
		err = fmt.Errorf("not an expectation")
	}
	return err
}

// kindOf returns the kind of that name; fine is true for the name "none".
func kindOf(word string) (kind provider.Kind, fine bool, err error) {
	if word == "none" {
		return provider.Unknown, true, nil
	}
	for k := provider.Unknown; k <= provider.Misconfigured; k++ {
		if k.String() == word {
			return k, false, nil
		}
	}
	return provider.Unknown, false, fmt.Errorf("%q is no kind", word)
}

// sourceOf reads "documented: ADDRESS".
func sourceOf(value string) (Source, error) {
	how, where, _ := strings.Cut(value, ": ")
	if how != Documented && how != SecondHand && how != Stated || strings.TrimSpace(where) == "" {
		return Source{}, fmt.Errorf("%q is no source: want %s, %s or %s, a colon and a place", value, Documented, SecondHand, Stated)
	}
	return Source{How: how, Where: where}, nil
}

// noteOf reads a note in its one form: all fields of a QuotaNote, in this order.
func noteOf(value string) (*provider.QuotaNote, error) {
	var (
		n         provider.QuotaNote
		on, again string
	)
	_, err := fmt.Sscanf(value, "limit=%g used=%g requested=%g per=%s on=%s again=%s",
		&n.Limit, &n.Used, &n.Requested, &n.Per, &on, &again)
	if err != nil {
		return nil, err
	}
	n.On = provider.Dimension(on)
	n.TryAgain, err = time.ParseDuration(again)
	return &n, err
}

// parseAnswer reads the recorded answer and makes its bytes for the wire. A recording without a line
// of status is the body alone.
func (c *Case) parseAnswer(data []byte, framing string) error {
	if !bytes.HasPrefix(data, []byte("HTTP/")) {
		c.Body, c.raw = data, data
		return nil
	}
	head, body, _ := bytes.Cut(data, []byte("\n\n"))
	status, fields, _ := strings.Cut(string(head), "\n")
	if _, err := fmt.Sscanf(status, "HTTP/1.1 %d", &c.Status); err != nil {
		return err
	}
	lines := strings.ReplaceAll(fields+"\n\n", "\n", "\r\n")
	header, err := textproto.NewReader(bufio.NewReader(strings.NewReader(lines))).ReadMIMEHeader()
	if err != nil && fields != "" {
		return err
	}
	c.Header, c.Body = http.Header(header), body
	c.raw = wireBytes(string(head), body, framing)
	return nil
}

// wireBytes returns an answer as it goes over the connection, with the headers of its framing.
func wireBytes(head string, body []byte, framing string) []byte {
	switch framing {
	case framingLength:
		head += fmt.Sprintf("\nContent-Length: %d", len(body))
	case framingCutChunk:
		head += "\nTransfer-Encoding: chunked"
		body = fmt.Appendf(nil, "%x\r\n%s\r\n", len(body), body)
	}
	return append([]byte(strings.ReplaceAll(head+"\n\n", "\n", "\r\n")), body...)
}

//go:embed testdata/vendors/*.http
var ofVendors embed.FS

// VendorCases returns the recordings that mean what they say only by the words of their vendor.
// The vendor's name begins theirs, such as xai_filtered. A client that does not know whom it
// calls reads them otherwise. They are in the order of their names.
func VendorCases() []Case { return casesIn(ofVendors, "testdata/vendors") }

// Vendor returns the name with which the recording's begins: for most the vendor that answered.
func (c Case) Vendor() string {
	name, _, _ := strings.Cut(c.Name, "_")
	return name
}

// Of reports whether the recording is an answer of the vendor of that name.
func (c Case) Of(name string) bool { return c.Vendor() == name || slices.Contains(c.Also, name) }
