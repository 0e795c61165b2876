package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/chat/chattest"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/gemini"
)

func main() {
	n := flag.Int("n", 1000, "how many bodies")
	seed := flag.Uint64("seed", 1, "of the random numbers")
	extremes := flag.Bool("extremes", false, "with seeds, and temperatures above 1, which some dialects refuse")
	images := flag.Bool("images", false, "with images as data URLs")
	links := flag.Bool("links", false, "with images at addresses of the web")
	files := flag.Bool("files", false, "with PDFs as data URLs")
	users := flag.Bool("users", false, "with who asked")
	freeJSON := flag.Bool("json", false, "with answers that are any JSON")
	schemas := flag.Bool("schemas", false, "with schemas for the answer")
	tools := flag.Bool("tools", false, "with tools, calls and results")
	parts := flag.Bool("parts", false, "with results of tools in parts")
	flag.Parse()
	var with chattest.With
	for shape, wanted := range map[chattest.With]bool{
		chattest.Extremes: *extremes, chattest.Images: *images, chattest.Schemas: *schemas, chattest.Tools: *tools,
		chattest.ResultParts: *parts,
		chattest.Links:       *links, chattest.Files: *files,
		chattest.Users: *users, chattest.FreeJSON: *freeJSON,
	} {
		if wanted {
			with |= shape
		}
	}
	if err := write(os.Stdout, *n, *seed, with); err != nil {
		fmt.Fprintln(os.Stderr, "bodies:", err)
		os.Exit(1)
	}
}

// made is a dialect's translation of a body: what it would send, or why it refuses.
type made struct {
	Sent    json.RawMessage `json:"sent,omitempty"`
	Refused string          `json:"refused,omitempty"`
}

type line struct {
	Body      json.RawMessage `json:"body"`
	Anthropic made            `json:"anthropic"`
	Gemini    made            `json:"gemini"`
	Converse  made            `json:"converse"`
}

func write(to io.Writer, n int, seed uint64, with chattest.With) error {
	out := bufio.NewWriter(to)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	rng := rand.New(rand.NewPCG(seed, seed))
	for range n {
		body := chattest.Body(rng, with)
		err := enc.Encode(line{
			Body: bytes.TrimSpace(body), Anthropic: try(anthropic.FromChat, body),
			Gemini: try(gemini.FromChat, body), Converse: try(converse.FromChat, body),
		})
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// maxTokens is the bound for a body without one, where a dialect demands it.
const maxTokens = 1024

func try(fromChat func(provider.Request, provider.Defaults) ([]byte, error), body []byte) made {
	sent, err := fromChat(provider.Request{Body: body}, provider.Defaults{MaxTokens: maxTokens})
	if err != nil {
		return made{Refused: err.Error()}
	}
	return made{Sent: sent}
}
