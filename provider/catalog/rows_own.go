package catalog

import "github.com/headrace/headrace/provider/openai"

// openAIKey is the variable of a key for servers without one of their own.
const openAIKey = "OPENAI_API_KEY"

// own lists servers of one's own, each at its default address, and the vendors that stand for
// unknown servers.
var own = []Vendor{
	{
		Name: "ollama", Title: "Ollama", Dialect: openai.Dialect{}, Charge: greater, Local: true, Auth: None,
		Base:   "http://localhost:11434/v1",
		Note:   "Cuts a prompt to the model's context silently, unless its file raises num_ctx (second-hand). 503 when 512 calls wait.",
		Source: "github.com/ollama/ollama v0.17.4", Day: "2026-11-21",
	},
	{
		Name: "vllm", Title: "vLLM", Dialect: openai.Dialect{}, Charge: greater, Local: true,
		Base: "http://localhost:8000/v1", Keys: []string{openAIKey},
		Note:   "Queues without bound. Also has Anthropic's messages. 404 for a model that it does not serve.",
		Source: "https://docs.vllm.ai", Day: "2026-10-18",
	},
	{
		Name: "llamacpp", Title: "llama.cpp", Dialect: openai.Dialect{}, Charge: greater, Local: true,
		Base: "http://localhost:8080/v1", Keys: []string{openAIKey},
		Note:   "Calls wait for a slot. 503 while it loads the model. Also has Anthropic's messages.",
		Source: "https://github.com/ggml-org/llama.cpp, tools/server/README.md", Day: "2026-10-18",
	},
	{
		Name: "lmstudio", Title: "LM Studio", Dialect: openai.Dialect{}, Charge: greater, Local: true,
		Base: "http://localhost:1234/v1", Keys: []string{"LM_API_TOKEN"},
		Note:   "Loads a model on its first call, which takes minutes.",
		Source: "https://lmstudio.ai/docs", Day: "2026-10-18",
	},
	{
		Name: "sglang", Title: "SGLang", Dialect: openai.Dialect{}, Charge: greater, Local: true,
		Base: "http://localhost:30000/v1", Keys: []string{"SGLANG_API_KEY"}, SecondHand: true,
		Note:   "503 when its queue is full, if that is bounded.",
		Source: "https://docs.sglang.ai", Day: "2026-10-18",
	},
	{
		Name: "local", Title: "your own server", Dialect: openai.Dialect{}, Charge: greater, Local: true,
		Keys: []string{openAIKey},
		Note: "Any server of OpenAI's shape without a quota.",
	},
	{
		Name: "generic", Title: "any server", Dialect: openai.Dialect{}, Charge: greater,
		Keys: []string{openAIKey},
		Note: "Any server of OpenAI's shape, with a quota. A gateway, such as LiteLLM's or Portkey's, is one.",
	},
}
