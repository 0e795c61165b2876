package foreign

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// The model of random weights: a llama as small as the servers take, with a token for each
// byte. Widths are multiples of 32, the block in which they compute.
const (
	width    = 64
	layers   = 2
	heads    = 4
	inner    = 128
	window   = 4096 // tokens, of question and answer
	endToken = 256  // after the bytes
	tokens   = 257
)

// Of dimension 0 of each token: large and the same, so that after the norm there is a
// constant. Times this the output layer has a bias in it.
const (
	constant  = 4
	unlikely  = -8 // tokens that are no printable ASCII: an answer is text
	sometimes = 0  // the end of the answer
)

// The template is ChatML without its special tokens, which the model has not.
const template = `{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}assistant: `

// writeModel writes a model in GGUF, version 3: the magic, counts, metadata, what the
// tensors are, and, aligned to 32 bytes, their values. It is the same for the same seed.
func writeModel(t *testing.T, path string, seed uint64) {
	t.Helper()
	w := &gguf{random: rand.New(rand.NewPCG(seed, seed))} //nolint:gosec // weights are no secret
	w.describe()
	w.tensors()
	if err := os.WriteFile(path, w.file(), 0o600); err != nil {
		t.Fatal(err)
	}
}

type gguf struct {
	random          *rand.Rand
	meta, about     bytes.Buffer
	values          bytes.Buffer
	metas, tensorsN uint64
}

// The numbers of GGUF's types.
const (
	typeUint32  = 4
	typeInt32   = 5
	typeFloat32 = 6
	typeString  = 8
	typeArray   = 9
)

func (g *gguf) describe() {
	g.word("general.architecture", "llama")
	g.word("general.name", "random")
	numbers := map[string]uint32{
		"llama.context_length": window, "llama.embedding_length": width, "llama.block_count": layers,
		"llama.feed_forward_length": inner, "llama.attention.head_count": heads, "llama.attention.head_count_kv": heads,
		"llama.rope.dimension_count": width / heads, "llama.vocab_size": tokens, "general.file_type": 0,
		"tokenizer.ggml.bos_token_id": endToken, "tokenizer.ggml.eos_token_id": endToken,
	}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		g.key(name, typeUint32)
		put(&g.meta, numbers[name])
	}
	g.key("llama.attention.layer_norm_rms_epsilon", typeFloat32)
	put(&g.meta, float32(1e-5))
	g.key("llama.rope.freq_base", typeFloat32)
	put(&g.meta, float32(10000))
	g.word("tokenizer.ggml.model", "gpt2")
	g.word("tokenizer.ggml.pre", "default")
	g.vocabulary()
	g.word("tokenizer.chat_template", template)
}

// vocabulary is one token for each byte, in the letters that GPT-2 writes them in, and one
// that ends an answer.
func (g *gguf) vocabulary() {
	g.array("tokenizer.ggml.tokens", typeString, tokens)
	for b := range 256 {
		text(&g.meta, string(byteLetter(b)))
	}
	text(&g.meta, "<end>")
	g.array("tokenizer.ggml.token_type", typeInt32, tokens)
	for range 256 {
		put(&g.meta, int32(1)) // normal
	}
	put(&g.meta, int32(3)) // control
	g.array("tokenizer.ggml.merges", typeString, 1)
	text(&g.meta, "Q Z") // there must be one; to no token, and so without effect
}

// byteLetter is the letter of a byte: itself if it can be seen, else one from 256 on.
func byteLetter(b int) rune {
	seen := func(b int) bool { return b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xFF && b != 0xAD }
	if seen(b) {
		return rune(b)
	}
	hidden := 0
	for before := range b {
		if !seen(before) {
			hidden++
		}
	}
	return rune(256 + hidden)
}

func (g *gguf) tensors() {
	g.tensor("token_embd.weight", width, tokens, func(row, column int) float32 {
		if column == 0 {
			return constant
		}
		return g.normal(1)
	})
	for i := range layers {
		block := fmt.Sprintf("blk.%d.", i)
		for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			g.matrix(block+name, width, width)
		}
		g.matrix(block+"ffn_gate", width, inner)
		g.matrix(block+"ffn_up", width, inner)
		g.matrix(block+"ffn_down", inner, width)
		g.ones(block + "attn_norm")
		g.ones(block + "ffn_norm")
	}
	g.ones("output_norm")
	g.tensor("output.weight", width, tokens, func(row, column int) float32 {
		switch {
		case column != 0:
			return g.normal(0.3)
		case row == endToken || row >= ' ' && row <= '~':
			return sometimes
		}
		return unlikely
	})
}

// matrix has values that are small compared with the constant, which must stay the largest.
func (g *gguf) matrix(name string, in, out uint64) {
	g.tensor(name+".weight", in, out, func(int, int) float32 { return g.normal(0.05) })
}

func (g *gguf) ones(name string) {
	g.tensor(name+".weight", width, 0, func(int, int) float32 { return 1 })
}

func (g *gguf) normal(deviation float32) float32 {
	return float32(g.random.NormFloat64()) * deviation
}

// tensor adds one of float32, row by row; of one dimension if there are no rows.
func (g *gguf) tensor(name string, columns, rows uint64, value func(row, column int) float32) {
	g.tensorsN++
	text(&g.about, name)
	if rows == 0 {
		put(&g.about, uint32(1))
		put(&g.about, columns)
	} else {
		put(&g.about, uint32(2))
		put(&g.about, columns)
		put(&g.about, rows)
	}
	put(&g.about, uint32(0)) // float32
	put(&g.about, uint64(g.values.Len()))
	for row := range max(rows, 1) {
		for column := range columns {
			put(&g.values, value(int(row), int(column)))
		}
	}
	align(&g.values)
}

func (g *gguf) word(name, value string) {
	g.key(name, typeString)
	text(&g.meta, value)
}

func (g *gguf) array(name string, kind uint32, n uint64) {
	g.key(name, typeArray)
	put(&g.meta, kind)
	put(&g.meta, n)
}

func (g *gguf) key(name string, kind uint32) {
	g.metas++
	text(&g.meta, name)
	put(&g.meta, kind)
}

func (g *gguf) file() []byte {
	var out bytes.Buffer
	out.WriteString("GGUF")
	put(&out, uint32(3))
	put(&out, g.tensorsN)
	put(&out, g.metas)
	out.Write(g.meta.Bytes())
	out.Write(g.about.Bytes())
	align(&out)
	out.Write(g.values.Bytes())
	return out.Bytes()
}

func text(w *bytes.Buffer, s string) {
	put(w, uint64(len(s)))
	w.WriteString(s)
}

func put(w *bytes.Buffer, v any) {
	_ = binary.Write(w, binary.LittleEndian, v) // a buffer takes everything
}

func align(w *bytes.Buffer) {
	const block = 32
	for w.Len()%block != 0 {
		w.WriteByte(0)
	}
}
