package chat

import (
	"bytes"
	"slices"
	"strings"

	"github.com/headrace/headrace/provider/rawjson"
)

var imageFields = []string{"url", "detail"}

// image reads an image that stands in the body itself. One at an address of the web would
// have to be fetched, by somebody else than whom the body was written for.
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
	return p.dataURL(url).in("url")
}

// mediaTypes are what stands before the data, by Media.
var mediaTypes = []string{PNG: "image/png", JPEG: "image/jpeg", WebP: "image/webp", GIF: "image/gif"}

// maxHead bounds what stands before the data, in bytes: the longest type is 10, and each
// character may be an escape of 6.
const maxHead = 6 * len("data:image/jpeg;base64,")

func (p *Part) dataURL(url []byte) *refusal {
	inner := rawjson.Inner(url)
	comma := bytes.IndexByte(inner[:min(len(inner), maxHead)], ',')
	if comma < 0 {
		return refuse("is not a data URL")
	}
	head := word(slices.Concat([]byte{'"'}, inner[:comma], []byte{'"'}))
	media, isData := strings.CutPrefix(head, "data:")
	media, isBase64 := strings.CutSuffix(media, ";base64")
	if !isData || !isBase64 {
		return refuse("is not a data URL in base64")
	}
	at := slices.Index(mediaTypes, media)
	if at <= 0 {
		return refuse("is not png, jpeg, webp or gif")
	}
	p.Kind, p.Media, p.Text = Image, Media(at), inner[comma+1:]
	return base64(p.Text)
}

// base64 refuses what others would read otherwise: other alphabets, missing padding, and
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
