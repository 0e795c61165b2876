package chat

import (
	"bytes"
	"slices"
	"strings"

	"github.com/headrace/headrace/provider/rawjson"
)

var (
	imageFields = []string{"url", "detail"}
	fileFields  = []string{"filename", "file_data", "file_id"}
)

// image reads an image that stands in the body itself, or at an address of the web.
func (p *Part) image(value []byte) *refusal {
	var url []byte
	refused := object(value, imageFields, func(name string, value []byte) *refusal {
		if name == "url" {
			return text(&url, value)
		}
		return only(value, `"auto"`)
	})
	if refused != nil {
		return refused
	}
	if url == nil {
		return refuse("is missing").in("url")
	}
	return p.imageAt(url).in("url")
}

// mediaTypes lists the types that stand before the data, by Media.
var mediaTypes = []string{PNG: "image/png", JPEG: "image/jpeg", WebP: "image/webp", GIF: "image/gif"}

func (p *Part) imageAt(url []byte) *refusal {
	if isSecure(rawjson.Inner(url)) {
		p.Kind, p.Text = Link, url
		return nil
	}
	media, data, ok := dataURL(url)
	if !ok {
		return refuse("is neither a data URL in base64 nor an address that begins with https://")
	}
	at := slices.Index(mediaTypes, media)
	if at <= 0 {
		return refuse("is not png, jpeg, webp or gif")
	}
	p.Kind, p.Media, p.Text = Image, Media(at), data
	return base64(data)
}

// isSecure reports whether a URL names a host behind TLS. Slashes may be escaped.
func isSecure(url []byte) bool {
	host, ok := bytes.CutPrefix(url, []byte("https://"))
	if !ok {
		host, ok = bytes.CutPrefix(url, []byte(`https:\/\/`))
	}
	return ok && len(host) > 0
}

// pdf is the media type of the files that other dialects take, too.
const pdf = "application/pdf"

// file reads a file that stands in the body itself. A file that OpenAI keeps has an id, and no
// other provider has it.
func (p *Part) file(value []byte) *refusal {
	var data []byte
	refused := object(value, fileFields, func(name string, value []byte) *refusal {
		switch name {
		case "filename":
			return text(&p.Name, value)
		case "file_data":
			return text(&data, value)
		}
		return refuse("has no counterpart")
	})
	if refused != nil {
		return refused
	}
	if data == nil {
		return refuse("is missing").in("file_data")
	}
	media, inner, ok := dataURL(data)
	if !ok || media != pdf {
		return refuse("is not a data URL of " + pdf + " in base64").in("file_data")
	}
	p.Kind, p.Text = Document, inner
	return base64(inner).in("file_data")
}

// maxHead bounds the part before the data, in bytes: each character may be an escape of 6.
const maxHead = 6 * len("data:"+pdf+";base64,")

// dataURL takes a data URL in base64 apart. It does not check the data.
func dataURL(url []byte) (media string, data []byte, ok bool) {
	inner := rawjson.Inner(url)
	comma := bytes.IndexByte(inner[:min(len(inner), maxHead)], ',')
	if comma < 0 {
		return "", nil, false
	}
	head := word(slices.Concat([]byte{'"'}, inner[:comma], []byte{'"'}))
	media, isData := strings.CutPrefix(head, "data:")
	media, isBase64 := strings.CutSuffix(media, ";base64")
	return media, inner[comma+1:], isData && isBase64
}

// base64 refuses data that others would read otherwise: other alphabets, missing padding, and
// every escape but that of a slash.
func base64(data []byte) *refusal {
	padding := len(data) - len(bytes.TrimRight(data, "="))
	digits := padding
	for i := 0; i < len(data)-padding; i++ {
		if data[i] == '\\' && data[i+1] == '/' {
			i++
		}
		if !isBase64(data[i]) {
			return refuse("is not plain base64")
		}
		digits++
	}
	if padding > 2 || digits == padding || digits%4 != 0 {
		return refuse("is incomplete base64")
	}
	return nil
}

func isBase64(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/'
}
