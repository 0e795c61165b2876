package door

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/headrace/headrace/batch/serve/internal/line"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// The headers in which the clients of the dialects send their token.
const (
	authorization = "Authorization"
	bearer        = "bearer "
	apiKey        = "X-Api-Key"
	googKey       = "X-Goog-Api-Key"
)

// Class is the rank of a request: the line has three.
type Class = line.Class

// The classes, from the one that has most of what leaves.
const (
	Interactive = line.Interactive
	Normal      = line.Normal
	Batch       = line.Batch
)

// Classes lists the names of the classes, in their order.
var Classes = [...]string{Interactive.String(), Normal.String(), Batch.String()}

// ClassOf returns the class of a name.
func ClassOf(name string) (Class, bool) { return line.ClassOf(name) }

// A Client is one that may come in. The zero value of each bound is none.
type Client struct {
	Name   string
	SHA256 [32]byte // of its token
	Weight int      // of its turns in the line; 0 counts as 1
	First  Class    // the best class that it may ask for

	MaxWaiting  int // requests of it that may wait, by whatever names
	MaxInFlight int // calls of it that may be in flight, likewise

	MaxCostDay, MaxCostRun limiter.Money // in each day of UTC, and since the server began

	Models  []string // that it may ask; nil: all
	Admin   bool     // it may see the status
	MayName bool     // it may name others by X-Headrace-Client, as a proxy does
}

// May reports whether the client may ask the model.
func (c *Client) May(model string) bool { return c.Models == nil || slices.Contains(c.Models, model) }

// Config says who may come in.
type Config struct {
	Clients []Client
	Open    bool     // requests without a token may come in; without Clients they are those of an admin
	Hosts   []string // names of the server, besides those of this machine
	Origins []string // pages that may call, such as "https://app.example"
}

// Anyone names the client of requests without a token, where the door is open.
const Anyone = "anyone"

// A Door is a value: many goroutines may use it.
type Door struct {
	clients map[[32]byte]*Client
	anyone  *Client // of requests without a token; nil: they are refused
	hosts   []string
	origins []string
}

// MaxName bounds the name of a client, in bytes.
const MaxName = 64

// New checks the configuration.
func New(c Config) (*Door, error) {
	d := &Door{clients: map[[32]byte]*Client{}, hosts: append([]string{"localhost", "127.0.0.1", "::1"}, c.Hosts...), origins: c.Origins}
	var faults []error
	for _, client := range c.Clients {
		switch earlier := d.clients[client.SHA256]; {
		case !IsName(client.Name):
			faults = append(faults, fmt.Errorf("client %.80q: a name has 1..%d of A-Z, a-z, 0-9, \".\", \"_\" and \"-\"", client.Name, MaxName))
		case client.SHA256 == [32]byte{}:
			faults = append(faults, fmt.Errorf("client %s: the checksum of its token is missing", client.Name))
		case earlier != nil:
			faults = append(faults, fmt.Errorf("clients %s and %s have the same token", earlier.Name, client.Name))
		case slices.ContainsFunc(c.Clients, func(other Client) bool { return other.Name == client.Name && other.SHA256 != client.SHA256 }):
			faults = append(faults, fmt.Errorf("client %s is there twice", client.Name))
		default:
			d.clients[client.SHA256] = &client
		}
	}
	if c.Open {
		d.anyone = &Client{Name: Anyone, Admin: len(c.Clients) == 0} // else nobody could see the status
	} else if len(c.Clients) == 0 {
		faults = append(faults, errors.New("there is no client: nobody could come in"))
	}
	return d, errors.Join(faults...)
}

// IsName reports whether a text may be the name of a client.
func IsName(s string) bool {
	return s != "" && len(s) <= MaxName && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
	})
}

// Foreign refuses a request that is not meant for this server: it has another host's name, as a page
// that rebinds its name makes it, or comes from a page. nil: it may come in. A request over a local
// socket may have any host.
func (d *Door) Foreign(r *http.Request, local bool) *provider.Refusal {
	if !local && !d.isHost(r.Host) {
		return refuse(http.StatusForbidden, "headrace_host", "this server is not known by that Host: call it by localhost or by a name that it was given")
	}
	if origin := r.Header.Values("Origin"); len(origin) > 0 && (len(origin) > 1 || !slices.Contains(d.origins, origin[0])) {
		return refuse(http.StatusForbidden, "headrace_origin", "pages in a browser may not call this server")
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case site == "", site == "none", site == "same-origin", r.Header.Get("Origin") != "":
		return nil
	}
	return refuse(http.StatusForbidden, "headrace_origin", "pages in a browser may not call this server")
}

// isHost reports whether a Host header names this server.
func (d *Door) isHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	return slices.Contains(d.hosts, name)
}

// Unfit refuses a body that is not plain JSON. nil: it may be read.
func Unfit(r *http.Request) *provider.Refusal {
	types := r.Header.Values("Content-Type")
	mediaType, parameters, err := "", map[string]string(nil), error(nil)
	if len(types) == 1 {
		mediaType, parameters, err = mime.ParseMediaType(types[0])
	}
	if charset := parameters["charset"]; err != nil || mediaType != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return refuse(http.StatusUnsupportedMediaType, "headrace_content_type", "the Content-Type must be application/json")
	}
	if slices.ContainsFunc(r.Header.Values("Content-Encoding"), func(coding string) bool { return coding != "" && coding != "identity" }) {
		return refuse(http.StatusUnsupportedMediaType, "headrace_content_type", "the body must come without a Content-Encoding")
	}
	return nil
}

// Tokens returns the tokens that a request shows.
func Tokens(h http.Header) (all []string) {
	for _, v := range h.Values(authorization) {
		if len(v) > len(bearer) && strings.EqualFold(v[:len(bearer)], bearer) {
			all = append(all, strings.TrimSpace(v[len(bearer):]))
		}
	}
	for _, name := range [...]string{apiKey, googKey} {
		for _, v := range h.Values(name) {
			if v = strings.TrimSpace(v); v != "" {
				all = append(all, v)
			}
		}
	}
	return all
}

// Client returns the client that a request's token is of.
func (d *Door) Client(h http.Header) (*Client, *provider.Refusal) {
	for _, token := range Tokens(h) {
		if c := d.clients[sha256.Sum256([]byte(token))]; c != nil {
			return c, nil
		}
	}
	if d.anyone != nil {
		return d.anyone, nil
	}
	return nil, refuse(http.StatusUnauthorized, "headrace_token", "the token of this server is missing or wrong: send it as the API key")
}

func refuse(status int, code, message string) *provider.Refusal {
	return &provider.Refusal{Status: status, Code: code, Message: message}
}
