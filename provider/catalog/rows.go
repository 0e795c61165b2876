package catalog

import (
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/cohere"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/gemini"
	"github.com/headrace/headrace/provider/openai"
)

// awsKey is the variable of Bedrock's keys, at all of its doors.
const awsKey = "AWS_BEARER_TOKEN_BEDROCK"

// Variables of tokens. They are sent as Bearer where keys have a header of their own.
const (
	anthropicToken = "ANTHROPIC_AUTH_TOKEN"
	entraToken     = "AZURE_OPENAI_AD_TOKEN"
)

// azureKeys lists the variables at all of Azure OpenAI's doors. A token comes last: it ends within
// an hour or so.
var azureKeys = []string{"AZURE_OPENAI_API_KEY", "AZURE_API_KEY", entraToken}

// quotaProject is for Google's doors that take tokens. It names the project to which a call is
// counted, if that is not the project of the credentials.
var quotaProject = map[string]string{"GOOGLE_CLOUD_QUOTA_PROJECT": "X-Goog-User-Project"}

// slowAnswers is for vendors that hold a call before it begins, or let it think for long: Azure
// speaks of 29 minutes, DeepSeek of 10 before it starts.
const slowAnswers = 30 * time.Minute

// claudeStreams is the bound beyond which Anthropic's own clients refuse to wait for an answer in
// one piece: at 128,000 tokens an hour it takes over 10 minutes.
const claudeStreams = 128_000 / 6

const (
	day    = 24 * time.Hour
	minute = time.Minute
	second = time.Second
)

// Charges that several rows have.
//
//   - OpenAI: a call's tokens are "the maximum of max_tokens and the estimated number of
//     tokens based on the character count of your request". It is assumed for vendors that
//     document nothing.
//   - Anthropic: input is estimated at the start and corrected, output counts as it is
//     written, and "max_tokens does not factor in".
//   - Bedrock: input and max_tokens are deducted at the start, and the unused part is
//     given back at the end. Without max_tokens it is the model's own maximum, which is
//     4,096 for older models and up to 64,000 for newer ones: always set it there.
//   - Gemini: a minute's limit on tokens is on input alone.
var (
	greater     = limiter.Charge{Rule: limiter.ChargeGreater}
	byAnthropic = limiter.Charge{Rule: limiter.ChargeAsExpected, CachedFree: true}
	byBedrock   = limiter.Charge{Rule: limiter.ChargeBoth, Assumed: 4096}
	byGemini    = limiter.Charge{Rule: limiter.ChargePromptOnly}
)

// byMinute: headers with OpenAI's names are always for a minute. Azure's rows do not have it,
// although Azure's limit on tokens is for a minute. With known periods a limit of 0 is
// believed, too, and Azure shows 0 where it means nothing.
var byMinute = limiter.Periods{{Family: "openai", Per: minute}}

// Tiers that several rows have. Google's examples say service_tier, and its servers take
// serviceTier as well.
var (
	tiersOfOpenAI  = map[string]string{Flex: `"service_tier":"flex"`, Standard: `"service_tier":"default"`}
	tiersOfGemini  = map[string]string{Flex: `"service_tier":"flex"`, Standard: `"service_tier":"standard"`}
	tiersOfBedrock = map[string]string{Flex: `"serviceTier":{"type":"flex"}`, Standard: `"serviceTier":{"type":"default"}`}
)

// billingOff is for Google: the project's billing is switched off, as a 403.
var billingOff = map[string]provider.Kind{"billing_disabled": provider.QuotaExhausted}

// ofBedrock: the first word is for a subscription that is still being made, for some 15 minutes, as
// a 403. The second is for a wrong clock. A model that can be reached only through an
// inference profile is no fault of the item.
var ofBedrock = provider.Wording{
	Kinds:   map[string]provider.Kind{"mpagreementbeingcreated": provider.Overloaded, "requestexpired": provider.Misconfigured},
	Phrases: []provider.Phrase{{Says: "with on-demand throughput isn", Kind: provider.ModelNotFound}},
}

// ofCohere: a trial key's calls of a month are used up, as a 429.
var ofCohere = provider.Wording{Phrases: []provider.Phrase{{Says: "api calls / month", Kind: provider.QuotaExhausted}}}

// ofZai holds Z.ai's error numbers, which Zhipu's own platform shares. 1211 and 1301 come as
// a 400, all others as a 429.
var ofZai = provider.Wording{Kinds: map[string]provider.Kind{
	"1112": provider.Unauthorized,   // the account is locked
	"1113": provider.QuotaExhausted, // no balance
	"1211": provider.ModelNotFound,
	"1301": provider.Refused,
	"1308": provider.QuotaExhausted, // until some hours have passed
	"1309": provider.QuotaExhausted, // the plan has expired
	"1310": provider.QuotaExhausted, // until a week or a month has passed
	"1311": provider.ModelNotFound,  // the plan does not include the model
}}

// ofVertex: the phrase is about the pool that all customers share.
var ofVertex = provider.Wording{
	Kinds:   billingOff,
	Phrases: []provider.Phrase{{Says: "resource exhausted. please try again later", Kind: provider.Overloaded}},
}

// ofDashScope: words that mean money elsewhere mean a minute's limit on tokens here, as a 429. Debts
// come as a 400. Used-up free quotas come as a 403, or as that very 429.
var ofDashScope = provider.Wording{
	Kinds: map[string]provider.Kind{"arrearage": provider.QuotaExhausted, "allocationquota.freetieronly": provider.QuotaExhausted},
	Phrases: []provider.Phrase{
		{Says: "free allocated quota exceeded", Kind: provider.QuotaExhausted},
		{Says: "allocated quota exceeded", Kind: provider.Throttled},
		{Says: "exceeded your current quota", Kind: provider.Throttled},
	},
}

// ofMiniMax: its numbers stand behind its prose. An empty balance comes as a 402, 429 or 500, the
// limit of a plan as a 429, and sensitive content as a 422 or 500.
var ofMiniMax = provider.Wording{Phrases: []provider.Phrase{
	{Says: "(1008)", Kind: provider.QuotaExhausted},
	{Says: "(2056)", Kind: provider.QuotaExhausted},
	{Says: "new_sensitive", Kind: provider.Refused}, // the prompt (1026) or the answer (1027) is
}}

// makers serve models of their own, or are the door to the models of one maker.
var makers = []Vendor{
	{
		Name: "openai", Title: "OpenAI", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.openai.com/v1", Hosts: []string{"api.openai.com"},
		Keys:         []string{"OPENAI_API_KEY"},
		Headers:      map[string]string{"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_PROJECT_ID": "OpenAI-Project"}, // openai-go v3.98.0
		Wording:      provider.Wording{Kinds: map[string]provider.Kind{"resource_unavailable": provider.Overloaded}},   // no room in the flex tier, as a 429
		Organisation: "Openai-Organization", Tiers: tiersOfOpenAI,
		Note:   "Limits are of an organisation and a model, and some models share theirs. --service-tier flex costs half, is slow, and has no room at times.",
		Source: "github.com/openai/openai-go/v3 v3.96.0; https://developers.openai.com/docs/guides/error-codes; its limits of 2026-10-18", Day: "2026-11-26",
	},
	{
		Name: "anthropic", Title: "Anthropic", Dialect: anthropic.Dialect{},
		Base: "https://api.anthropic.com", Hosts: []string{"api.anthropic.com"},
		Auth: XAPIKey, Keys: []string{"ANTHROPIC_API_KEY", anthropicToken}, Bearers: []string{anthropicToken}, // anthropic-sdk-go v1.84.0
		Endpoint: "ANTHROPIC_BASE_URL", Charge: byAnthropic, Settles: true, StreamOver: claudeStreams, // the token is often that server's
		Periods:      limiter.Periods{{Family: "anthropic", Per: minute}},
		Organisation: "Anthropic-Organization-Id",
		Note:         "Models of a class share their limits. max_tokens is required.",
		Source:       "github.com/anthropics/anthropic-sdk-go v1.84.0; its limits of 2026-10-18: https://docs.anthropic.com/en/api/rate-limits", Day: "2026-11-26",
	},
	{
		Name: "gemini", Title: "Gemini (AI Studio)", Dialect: gemini.Dialect{},
		Base: "https://generativelanguage.googleapis.com/v1beta", Hosts: []string{"generativelanguage.googleapis.com"},
		Auth: GoogAPIKey, Keys: []string{"GOOGLE_API_KEY", "GEMINI_API_KEY"}, Charge: byGemini, Tiers: tiersOfGemini, // https://ai.google.dev/gemini-api/docs/flex-inference
		Wording: provider.Wording{Kinds: billingOff},
		Note:    "Limits are of a project: more keys of one project give nothing. No headers. A refused prompt that is too long still counts (second-hand).",
		Source:  "google.golang.org/genai v1.77.0; its limits of 2026-10-18: https://ai.google.dev/gemini-api/docs/rate-limits", Day: "2026-11-26",
	},
	{
		Name: "google-openai", Title: "Gemini, OpenAI's shape", Dialect: openai.Dialect{},
		Base: "https://generativelanguage.googleapis.com/v1beta/openai",
		Keys: []string{"GOOGLE_API_KEY", "GEMINI_API_KEY"}, Charge: byGemini,
		Wording: provider.Wording{Kinds: billingOff},
		Note:    "Labelled beta by its maker. No headers.",
		Source:  "https://ai.google.dev/gemini-api/docs/openai", Day: "2026-10-18",
	},
	{
		Name: "vertex", Title: "Gemini (Vertex AI)", Dialect: gemini.Dialect{},
		Base: vertexBase + vertexGoogle, Bases: vertexBases(vertexGoogle),
		Hosts: []string{"aiplatform.googleapis.com", "{location}-aiplatform.googleapis.com", "aiplatform.{location}.rep.googleapis.com"},
		Auth:  Google, Headers: quotaProject, Charge: byGemini, Serves: []string{provider.GenerateContent, provider.EmbedContent},
		Wording: ofVertex,
		Note:    "A 429 tells of a pool that all share, not of your own quota: it is read as overload. Embeddings are those of gemini-embedding-2 and later, one text a line. No headers.",
		Source:  "google.golang.org/genai v1.77.0; its limits of 2026-10-18: https://cloud.google.com/vertex-ai/generative-ai/docs/error-code-429", Day: "2026-11-26",
	},
	{
		Name: "vertex-express", Title: "Gemini (Vertex AI in express mode)", Dialect: gemini.Dialect{},
		Base: "https://aiplatform.googleapis.com/v1/publishers/google",
		Auth: GoogAPIKey, Keys: []string{"GOOGLE_API_KEY"}, Charge: byGemini, Wording: ofVertex, Serves: []string{provider.GenerateContent},
		Note:   "A key and neither a project nor a location. It has no embeddings. No headers.",
		Source: "https://cloud.google.com/vertex-ai/generative-ai/docs/start/express-mode/vertex-ai-express-mode-api-reference; google.golang.org/genai v1.77.0", Day: "2026-11-26",
	},
	{
		Name: "vertex-openai", Title: "Vertex AI, OpenAI's shape", Dialect: openai.Dialect{}, Charge: byGemini,
		Base: vertexBase + vertexOpenAPI, Bases: vertexBases(vertexOpenAPI),
		Auth: Google, Headers: quotaProject, Wording: ofVertex, Serves: []string{provider.Chat, provider.Embeddings},
		Note:   "Models are named with their maker, as in google/gemini-2.5-flash. No headers.",
		Source: "https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/call-vertex-using-openai-library", Day: "2026-11-26",
	},
	{
		Name: "vertex-anthropic", Title: "Claude on Vertex AI", Dialect: anthropic.Dialect{}, Charge: greater,
		Base: vertexBase + vertexClaude, Bases: vertexBases(vertexClaude), Path: "/models/{model}:rawPredict", StreamPath: "/models/{model}:streamRawPredict", InBody: `"anthropic_version":"vertex-2023-10-16"`,
		Places: map[string][]string{
			"project":  {"ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT", "GOOGLE_VERTEX_PROJECT"},
			"location": {"CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION", "GOOGLE_VERTEX_LOCATION"},
		},
		Auth: Google, Headers: quotaProject, Wording: provider.Wording{Kinds: billingOff}, StreamOver: claudeStreams,
		Note:   "The model is part of the address: a body is sent without its own, and with the version in that place. Quotas are of a model and a location, and may be 0. No headers.",
		Source: "https://docs.anthropic.com/en/api/claude-on-vertex-ai; github.com/anthropics/anthropic-sdk-go v1.84.0, vertex", Day: "2026-11-26",
	},
	{
		Name: "azure", Title: "Azure OpenAI", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://{resource}.openai.azure.com/openai/v1", Hosts: []string{"openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com"},
		Auth: APIKey, Keys: azureKeys, Bearers: []string{entraToken}, Endpoint: "AZURE_OPENAI_ENDPOINT", Timeout: slowAnswers,
		Note:   "The body's model is the name of a deployment. Limits of requests are enforced by 1 or 10 seconds; deployments of one subscription may share theirs.",
		Source: "github.com/openai/openai-go/v3 v3.96.0, azure", Day: "2026-11-26",
	},
	{
		Name: "azure-deployments", Title: "Azure OpenAI, older addresses", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://{resource}.openai.azure.com/openai", Path: "/deployments/{model}{path}?api-version=2024-10-21",
		Auth: APIKey, Keys: azureKeys, Bearers: []string{entraToken}, Endpoint: "AZURE_OPENAI_ENDPOINT", Timeout: slowAnswers,
		Serves: []string{provider.Chat, provider.Completions, provider.Embeddings},
		Note:   "The model is the name of a deployment and is part of the address; the body's is ignored. It has no Responses: azure has.",
		Source: "github.com/openai/openai-go/v3 v3.96.0, azure", Day: "2026-11-26",
	},
	{
		Name: "azure-ai", Title: "Azure AI Foundry models", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://{resource}.services.ai.azure.com/openai/v1",
		Auth: APIKey, Keys: azureKeys, Bearers: []string{entraToken}, Timeout: slowAnswers,
		Note:   "The body's model is the name of a deployment, of whichever maker. Serverless deployments have addresses of their own.",
		Source: "https://learn.microsoft.com/en-us/azure/ai-foundry/foundry-models/concepts/endpoints", Day: "2026-11-26",
	},
	{
		Name: "azure-anthropic", Title: "Claude on Azure", Dialect: anthropic.Dialect{},
		Base: "https://{resource}.services.ai.azure.com/anthropic",
		Auth: XAPIKey, Keys: []string{"ANTHROPIC_FOUNDRY_API_KEY"}, Charge: byAnthropic, Settles: true, Timeout: slowAnswers, StreamOver: claudeStreams,
		Places: map[string][]string{"resource": {"ANTHROPIC_FOUNDRY_RESOURCE", "AZURE_RESOURCE_NAME"}}, // anthropic-sdk-go v1.84.0
		Note:   "The model is the name of a deployment. No headers of limits.",
		Source: "github.com/anthropics/anthropic-sdk-go v1.84.0, foundry", Day: "2026-11-26",
	},
	{
		Name: "bedrock", Title: "Amazon Bedrock", Dialect: converse.Dialect{},
		Base:  "https://bedrock-runtime.{region}.amazonaws.com",
		Bases: map[string]string{"cn-": "https://bedrock-runtime.{region}.amazonaws.com.cn"},
		Hosts: []string{"bedrock-runtime.{region}.amazonaws.com", "bedrock-runtime-fips.{region}.amazonaws.com", "bedrock-runtime.{region}.amazonaws.com.cn"},
		Auth:  AWS, Service: "bedrock", Keys: []string{awsKey}, Charge: byBedrock, Settles: true, Wording: ofBedrock,
		Tiers:  tiersOfBedrock, // API_runtime_ServiceTier: priority, default, flex or reserved
		Note:   "Many models are reached by the id of an inference profile only. Output burns faster than it is written with some: 5 times with Claude 3.7 and later (second-hand). Embeddings: Titan 2, Cohere 3 and 4. No headers.",
		Source: "https://docs.aws.amazon.com/bedrock/latest/userguide: Endpoints, API keys, Troubleshooting API error codes", Day: "2026-10-18",
	},
	{
		Name: "bedrock-openai", Title: "Amazon Bedrock, OpenAI's shape", Dialect: openai.Dialect{},
		Base: "https://bedrock-runtime.{region}.amazonaws.com/openai/v1",
		Keys: []string{awsKey}, Charge: byBedrock, Settles: true,
		Note:   "Application profiles are refused here. A short-lived key lives 12 hours at most. No headers.",
		Source: "github.com/openai/openai-go/v3 v3.96.0, bedrock", Day: "2026-11-26",
	},
	{
		Name: "bedrock-anthropic", Title: "Claude on Amazon Bedrock", Dialect: anthropic.Dialect{},
		Base: "https://bedrock-mantle.{region}.api.aws/anthropic", Hosts: []string{"bedrock-mantle.{region}.api.aws"},
		Auth: AWS, Service: "bedrock-mantle", Keys: []string{awsKey}, Charge: byBedrock, Settles: true, StreamOver: claudeStreams,
		Note:   "Models begin with anthropic. as in anthropic.claude-haiku-5. No limit on requests. No headers.",
		Source: "github.com/anthropics/anthropic-sdk-go v1.84.0, bedrock", Day: "2026-11-26",
	},
	{
		Name: "cohere", Title: "Cohere", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.cohere.ai/compatibility/v1", Hosts: []string{"api.cohere.ai", "api.cohere.com"},
		Keys: []string{"CO_API_KEY", "COHERE_API_KEY"}, ByAccount: true, Serves: []string{provider.Chat, provider.Embeddings},
		Wording: ofCohere,
		Note:    "Its compatible door, of chats and embeddings: no n, logit_bias, store or parallel_tool_calls. A trial key has 20 chats a minute and 1,000 calls a month. No headers.",
		Source:  "https://docs.cohere.com: Compatibility API, Rate limits", Day: "2026-10-18",
	},
	{
		Name: "cohere-v2", Title: "Cohere, its own shape", Dialect: cohere.Dialect{}, Charge: greater,
		Base: "https://api.cohere.com",
		Keys: []string{"CO_API_KEY", "COHERE_API_KEY"}, ByAccount: true,
		Wording: ofCohere,
		Note:    "Rerank and embeddings. Each text must say what it is for: --param input_type=search_document, search_query, classification or clustering. A rerank is billed by searches, so its cost is not known. No headers.",
		Source:  "docs.cohere.com, API reference v2: Rerank, Embed", Day: "2026-11-26",
	},
	{
		Name: "mistral", Title: "Mistral", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.mistral.ai/v1", Hosts: []string{"api.mistral.ai"},
		Keys: []string{"MISTRAL_API_KEY"}, ByAccount: true,
		Periods: limiter.Periods{{Family: "minute", Per: minute}},
		Wording: provider.Wording{Kinds: map[string]provider.Kind{"service_tier_capacity_exceeded": provider.Overloaded}},
		Note:    "Requests are enforced by the second. A limit of 0 means that the model is not on the plan. random_seed instead of seed.",
		Source:  "https://docs.mistral.ai", Day: "2026-10-18",
	},
	{
		Name: "deepseek", Title: "DeepSeek", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.deepseek.com/v1", Hosts: []string{"api.deepseek.com"},
		Keys: []string{"DEEPSEEK_API_KEY"}, InFlight: 500, Timeout: slowAnswers,
		Note:   "Limits calls in flight, not their rate: 500 with Pro, 2,500 with Flash. A call may be kept for 10 minutes before it begins; temperature has no effect while the model thinks. No headers.",
		Source: "https://api-docs.deepseek.com/quick_start: error_codes, rate_limit", Day: "2026-11-26",
	},
	{
		Name: "xai", Title: "xAI", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.x.ai/v1", Hosts: []string{"api.x.ai"},
		Keys: []string{"XAI_API_KEY"}, TellsCost: true,
		Note:   "Reasoning and cached tokens count against the limits, which are by second and minute. A prompt that is refused beforehand costs $0.05.",
		Source: "https://docs.x.ai/developers/debugging", Day: "2026-11-26",
	},
	{
		Name: "moonshot", Title: "Moonshot AI (Kimi)", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.moonshot.ai/v1", Hosts: []string{"api.moonshot.ai"},
		Keys: []string{"MOONSHOT_API_KEY"}, ByAccount: true, InFlight: 1,
		Wording: provider.Wording{Phrases: []provider.Phrase{{Says: "tpd rate limit", Kind: provider.QuotaExhausted}}}, // by the day
		Note:    "The smallest accounts have 1 call in flight and 3 a minute; from $10 on it is 50 and 200: set them (second-hand).",
		Source:  "https://www.kimi.com/help/kimi-api: API rate limits, API troubleshooting", Day: "2026-11-26",
	},
	{
		Name: "moonshot-cn", Title: "Moonshot AI (Kimi) in China", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.moonshot.cn/v1", Hosts: []string{"api.moonshot.cn"},
		Keys: []string{"MOONSHOT_API_KEY"}, ByAccount: true, InFlight: 1,
		Note:   "Keys of platform.kimi.com. The smallest accounts have 1 call in flight and 3 a minute.",
		Source: "https://platform.kimi.com/docs/api/overview", Day: "2026-11-26",
	},
	{
		Name: "dashscope", Title: "Alibaba Cloud Model Studio (Qwen)", Dialect: openai.Dialect{}, Charge: greater,
		Base:  "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
		Hosts: []string{"dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com", "ap-southeast-1.maas.aliyuncs.com", "eu-central-1.maas.aliyuncs.com"},
		Keys:  []string{"DASHSCOPE_API_KEY"}, Wording: ofDashScope,
		Note:   "Singapore. A key is valid in its region only; --base-url names that of another. Limits are of an account and a model, and are enforced by the second, too.",
		Source: "https://www.alibabacloud.com/help/model-studio/base-url; https://help.aliyun.com/en/model-studio/rate-limit; https://help.aliyun.com/en/model-studio/error-code", Day: "2026-11-26",
	},
	{
		Name: "dashscope-cn", Title: "Alibaba Cloud Model Studio in China", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://dashscope.aliyuncs.com/compatible-mode/v1", Hosts: []string{"dashscope.aliyuncs.com", "cn-beijing.maas.aliyuncs.com"},
		Keys: []string{"DASHSCOPE_API_KEY"}, Wording: ofDashScope,
		Note:   "Beijing. Limits are of an account and a model, and are enforced by the second, too.",
		Source: "https://help.aliyun.com/model-studio/base-url; https://help.aliyun.com/en/model-studio/rate-limit; https://help.aliyun.com/en/model-studio/error-code", Day: "2026-11-26",
	},
	{
		Name: "minimax", Title: "MiniMax", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.minimax.io/v1", Hosts: []string{"api.minimax.io"},
		Keys: []string{"MINIMAX_API_KEY"}, Wording: ofMiniMax,
		Note:   "A key of a plan does not draw on the balance, and the other way round. Thinking may be part of the answer, between <think> tags.",
		Source: "https://platform.minimax.io/docs/api-reference/errorcode.md; the address: developersdigest.tech, API compatibility, which quotes the maker", Day: "2026-11-26",
	},
	{
		Name: "minimax-cn", Title: "MiniMax in China", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.minimaxi.com/v1", Hosts: []string{"api.minimaxi.com"},
		Keys: []string{"MINIMAX_API_KEY"}, Wording: ofMiniMax,
		Source: "https://platform.minimaxi.com/docs/api-reference/responses-create", Day: "2026-11-26",
	},
	{
		Name: "perplexity", Title: "Perplexity", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.perplexity.ai/v1", Hosts: []string{"api.perplexity.ai"},
		Keys: []string{"PERPLEXITY_API_KEY"}, TellsCost: true, Serves: []string{provider.Responses},
		Note:   "Speaks Responses alone: its chat completions ended on 27 September 2026 (second-hand).",
		Source: "https://docs.perplexity.ai/docs/grounded-llm/openai-compatibility; the day of the end: https://docs.stigg.io/documentation/ai-agents/providers/perplexity", Day: "2026-11-26",
	},
	{
		Name: "zai", Title: "Z.ai", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://api.z.ai/api/paas/v4", Hosts: []string{"api.z.ai"},
		Keys: []string{"ZAI_API_KEY"}, SecondHand: true,
		Wording: ofZai,
		Source:  "https://docs.z.ai/api-reference/api-code", Day: "2026-11-26",
	},
	{
		Name: "zai-cn", Title: "Zhipu AI (Z.ai in China)", Dialect: openai.Dialect{}, Charge: greater,
		Base: "https://open.bigmodel.cn/api/paas/v4", Hosts: []string{"open.bigmodel.cn"},
		Keys: []string{"ZHIPUAI_API_KEY", "ZAI_API_KEY"}, Wording: ofZai,
		Source: "https://pypi.org/project/zhipuai/2.1.5.20250801", Day: "2026-11-26",
	},
}

// Vertex's paths by maker, below the addresses of its places.
const (
	vertexBase    = "https://{location}-aiplatform.googleapis.com"
	vertexPlace   = "/v1/projects/{project}/locations/{location}"
	vertexGoogle  = vertexPlace + "/publishers/google"
	vertexClaude  = vertexPlace + "/publishers/anthropic"
	vertexOpenAPI = vertexPlace + "/endpoints/openapi"
)

// vertexBases returns the addresses of places that stand for many regions, or all.
func vertexBases(below string) map[string]string {
	return map[string]string{
		"global": "https://aiplatform.googleapis.com" + below,
		"us":     "https://aiplatform.us.rep.googleapis.com" + below,
		"eu":     "https://aiplatform.eu.rep.googleapis.com" + below,
	}
}
