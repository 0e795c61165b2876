package catalog

import (
	"net/http"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
)

// hosts serve the models of many makers, or pass calls on to such servers. They all speak
// OpenAI's dialect.
var hosts = []Vendor{
	{
		Name: "openrouter", Title: "OpenRouter", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://openrouter.ai/api/v1", Hosts: []string{"openrouter.ai"},
		Keys: []string{"OPENROUTER_API_KEY"}, TellsCost: true,
		Note:   "What is in flight reserves credit and gives it back: a 402 may mean to wait. Several providers are behind one model. Free models have 20 calls a minute, and 50 or 1,000 a day. Headers only on its own 429.",
		Source: "https://openrouter.ai/docs, and a study with recorded answers", Day: "2026-10-02",
	},
	{
		Name: "groq", Title: "Groq", Dialect: openai.Dialect{},
		Base: "https://api.groq.com/openai/v1", Hosts: []string{"api.groq.com"},
		Keys:    []string{"GROQ_API_KEY"},
		Periods: limiter.Periods{{Family: "openai", On: limiter.Requests, Per: day}, {Family: "openai", On: limiter.Tokens, Per: minute}},
		Charge:  limiter.Charge{Rule: limiter.ChargeGreater, CachedFree: true},
		Note:    "The header of requests is always a day's. The flex tier answers 498 where it has no room.",
		Source:  "https://console.groq.com/docs/errors", Day: "2026-11-26",
	},
	{
		Name: "together", Title: "Together AI", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.together.xyz/v1", Hosts: []string{"api.together.xyz", "api.together.ai"},
		Keys:    []string{"TOGETHER_API_KEY"},
		Periods: limiter.Periods{{Family: "plain", Per: second}},
		Note:    "Limits follow live capacity and your recent use; 60 a minute are 1 a second. 503 means that the platform is full, below your rate (headers second-hand).",
		Source:  "https://docs.together.ai/docs/rate-limits", Day: "2026-10-09",
	},
	{
		Name: "fireworks", Title: "Fireworks AI", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.fireworks.ai/inference/v1", Hosts: []string{"api.fireworks.ai"},
		Keys:    []string{"FIREWORKS_API_KEY"},
		Periods: limiter.Periods{{Family: "fireworks", Per: second}},
		Wording: provider.Wording{Statuses: map[int]provider.Kind{http.StatusPreconditionFailed: provider.QuotaExhausted}},
		Note:    "Three limits of tokens, by the second: all of the prompt, what of it is not cached, and output. x-session-affinity makes its caches hit.",
		Source:  "https://docs.fireworks.ai: Serverless Inference Overview, Inference Error Codes", Day: "2026-10-18",
	},
	{
		Name: "cerebras", Title: "Cerebras", Dialect: openai.Dialect{},
		Base: "https://api.cerebras.ai/v1", Hosts: []string{"api.cerebras.ai"},
		Keys: []string{"CEREBRAS_API_KEY"}, Charge: limiter.Charge{Rule: limiter.ChargeBoth, Assumed: 16384},
		Periods: limiter.Periods{{Family: "minute", Per: minute}, {Family: "hour", Per: time.Hour}, {Family: "day", Per: day}},
		Wording: provider.Wording{Kinds: map[string]provider.Kind{"multimodal_not_enabled": provider.Invalid}}, // as a 403
		Note:    "A call takes its prompt and its max_completion_tokens when it is let in, and gives nothing back; one without takes an estimate, or 16,384 (second-hand): always set it.",
		Source:  "https://inference-docs.cerebras.ai/support/error, and recorded answers", Day: "2026-11-26",
	},
	{
		Name: "sambanova", Title: "SambaNova", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.sambanova.ai/v1", Hosts: []string{"api.sambanova.ai"},
		Keys: []string{"SAMBANOVA_API_KEY"}, SecondHand: true,
		Periods: byMinute,
		Note:    "A second header of requests is a day's.",
		Source:  "https://docs.sambanova.ai/docs/en/api-reference/using-the-api/api-error-codes", Day: "2026-11-26",
	},
	{
		Name: "nebius", Title: "Nebius Token Factory", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.tokenfactory.nebius.com/v1", Hosts: []string{"api.tokenfactory.nebius.com", "api.studio.nebius.ai"},
		Keys: []string{"NEBIUS_API_KEY"}, Periods: byMinute,
		Note:   "Limits are adapted each 15 minutes to what is used.",
		Source: "https://docs.studio.nebius.com/ai-models-inference/rate-limits", Day: "2026-11-26",
	},
	{
		Name: "nvidia", Title: "NVIDIA NIM", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://integrate.api.nvidia.com/v1", Hosts: []string{"integrate.api.nvidia.com"},
		Keys:    []string{"NVIDIA_API_KEY"},
		Wording: provider.Wording{Phrases: []provider.Phrase{{Says: "degraded function cannot be invoked", Kind: provider.Overloaded}}},
		Source:  "https://docs.nvidia.com/nemo/microservices/25.4.0/troubleshooting/guardrails.html", Day: "2026-11-26",
	},
	{
		Name: "deepinfra", Title: "DeepInfra", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.deepinfra.com/v1/openai", Hosts: []string{"api.deepinfra.com"},
		Keys: []string{"DEEPINFRA_TOKEN", "DEEPINFRA_API_KEY"}, InFlight: 200,
		Note:   "200 calls in flight for each model.",
		Source: "https://deepinfra.com/docs", Day: "2026-10-18",
	},
	{
		Name: "hyperbolic", Title: "Hyperbolic", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.hyperbolic.xyz/v1", Hosts: []string{"api.hyperbolic.xyz"},
		Keys: []string{"HYPERBOLIC_API_KEY"}, SecondHand: true,
		Source: "https://www.lava.so/docs/reference/providers/hyperbolic", Day: "2026-11-26",
	},
	{
		Name: "novita", Title: "Novita AI", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.novita.ai/openai/v1", Hosts: []string{"api.novita.ai"},
		Keys: []string{"NOVITA_API_KEY"}, SecondHand: true,
		Source: "https://novita.ai/docs/api-reference/basic-error-code", Day: "2026-11-26",
	},
	{
		Name: "huggingface", Title: "Hugging Face Inference Providers", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://router.huggingface.co/v1", Hosts: []string{"router.huggingface.co"},
		Keys:    []string{"HF_TOKEN", "HUGGINGFACE_API_KEY"},
		Wording: provider.Wording{Kinds: map[string]provider.Kind{"model_not_supported": provider.ModelNotFound}},
		Note:    "Passes on to other hosts; which, is chosen with the name of the model.",
		Source:  "https://huggingface.co/docs/inference-providers", Day: "2026-10-18",
	},
	{
		Name: "siliconflow", Title: "SiliconFlow", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.siliconflow.com/v1", Hosts: []string{"api.siliconflow.com"},
		Keys: []string{"SILICONFLOW_API_KEY"}, Wording: ofSiliconFlow, SecondHand: true,
		Note:   "Limits are of an account and a model.",
		Source: "https://www.siliconflow.com/blog/openai-sdk-siliconflow-compatibility-checks; https://docs.siliconflow.cn/en/faqs/error-code", Day: "2026-11-26",
	},
	{
		Name: "siliconflow-cn", Title: "SiliconFlow in China", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.siliconflow.cn/v1", Hosts: []string{"api.siliconflow.cn"},
		Keys: []string{"SILICONFLOW_API_KEY"}, Wording: ofSiliconFlow, SecondHand: true,
		Note:   "Limits are of an account and a model.",
		Source: "https://docs.siliconflow.cn/docs/userguide/quickstart; https://docs.siliconflow.cn/faqs/error-code", Day: "2026-11-26",
	},
	{
		Name: "databricks", Title: "Databricks", Dialect: openai.Dialect{}, Charge: greater,
		Base:  "https://{resource}.cloud.databricks.com/serving-endpoints",
		Hosts: []string{"cloud.databricks.com", "azuredatabricks.net", "gcp.databricks.com"}, Places: map[string][]string{"resource": nil},
		Endpoint: "DATABRICKS_HOST", Keys: []string{"DATABRICKS_TOKEN"},
		Note:   "The resource is the workspace's, on AWS; of any cloud it may be in DATABRICKS_HOST. The model is the name of an endpoint. Input and output tokens have limits of their own. No headers.",
		Source: "https://docs.databricks.com/machine-learning/model-serving/score-model-serving-endpoints; https://docs.databricks.com/aws/machine-learning/foundation-model-apis/limits", Day: "2026-11-26",
	},
	{
		Name: "ollama-cloud", Title: "Ollama's cloud", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://ollama.com/v1", Hosts: []string{"ollama.com"},
		Keys: []string{"OLLAMA_API_KEY"}, ByAccount: true,
		Wording: provider.Wording{Phrases: []provider.Phrase{{Says: "usage limit", Kind: provider.QuotaExhausted}}},
		Note:    "Plans bound the use of a session, a week or a month, and the calls in flight: set -c (second-hand).",
		Source:  "https://docs.ollama.com/api/introduction", Day: "2026-11-26",
	},
	{
		Name: "sagemaker", Title: "Amazon SageMaker", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://runtime.sagemaker.{region}.amazonaws.com/endpoints", Hosts: []string{"runtime.sagemaker.{region}.amazonaws.com"},
		Path: "/{model}/openai/v1{path}", InBody: `"model":""`, Serves: []string{provider.Chat},
		Wording: provider.Wording{Phrases: []provider.Phrase{{Says: "received server error", Kind: provider.Server}}},
		Note:    "The model is the name of your endpoint. A token lives 12 hours at most, and no variable is known for it: --api-key-file has it. A body's model is emptied, as containers know another (second-hand). No quota but the endpoint's own.",
		Source:  "https://docs.aws.amazon.com/sagemaker/latest/dg/realtime-endpoints-openai-compatible.html", Day: "2026-11-26",
	},
}

// ofSiliconFlow: an empty balance comes as a 403, and a missing model as a 400.
var ofSiliconFlow = provider.Wording{Kinds: map[string]provider.Kind{"30001": provider.QuotaExhausted, "20012": provider.ModelNotFound}}

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
