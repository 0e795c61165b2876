// Prints usages as providers report them, with the cost that genai-prices computes for each: an
// object a line. The figures come from a fixed sequence, so that a refresh shows new prices alone.
const { calcPrice, extractUsage, findProvider } = require(process.argv[2])

let state = 20260923
const draw = below => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return Math.floor(state / 4294967296 * below) // the low bits of such a sequence take turns
}

const cases = []
const add = (vendor, provider, flavor, models, days, body) => cases.push({ vendor, provider, flavor, models, days, body })
const message = { choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }] }
const today = ['2026-11-20T12:00:00Z']

// chat makes a chat completion. apart says that thoughts are not in completion_tokens.
const chat = ({ most = 40000, apart = false, writes = false, thinks = true } = {}) => () => {
  const prompt = 1 + draw(most), completion = 1 + draw(3000), cached = draw(2) * draw(prompt)
  const thought = thinks ? draw(2) * draw(apart ? 2000 : completion) : 0
  const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion + (apart ? thought : 0) }
  usage.prompt_tokens_details = { cached_tokens: cached }
  if (writes) usage.prompt_tokens_details.cache_write_tokens = draw(prompt - cached + 1)
  usage.completion_tokens_details = { reasoning_tokens: thought }
  return { ...message, usage }
}
const responses = most => () => {
  const input = 1 + draw(most), output = 1 + draw(3000), cached = draw(input), written = draw(input - cached + 1)
  return {
    object: 'response', status: 'completed', output: [{ type: 'message', content: [{ type: 'output_text', text: 'x' }] }],
    usage: {
      input_tokens: input, input_tokens_details: { cached_tokens: cached, cache_write_tokens: written },
      output_tokens: output, output_tokens_details: { reasoning_tokens: draw(output) }, total_tokens: input + output,
    },
  }
}
const messages = most => () => {
  const short = draw(2) * draw(most), long = draw(2) * draw(most)
  return {
    type: 'message', role: 'assistant', content: [{ type: 'text', text: 'x' }], stop_reason: 'end_turn',
    usage: {
      input_tokens: 1 + draw(most), cache_creation_input_tokens: short + long, cache_read_input_tokens: draw(2) * draw(most), output_tokens: 1 + draw(3000),
      cache_creation: { ephemeral_5m_input_tokens: short, ephemeral_1h_input_tokens: long },
    },
  }
}
const gemini = most => () => {
  const prompt = 1 + draw(most), output = 1 + draw(3000), thought = draw(2) * draw(2000), tool = draw(2) * draw(900)
  return {
    candidates: [{ content: { parts: [{ text: 'x' }], role: 'model' }, finishReason: 'STOP' }],
    usageMetadata: {
      promptTokenCount: prompt, candidatesTokenCount: output, thoughtsTokenCount: thought, toolUsePromptTokenCount: tool,
      cachedContentTokenCount: draw(2) * draw(prompt), totalTokenCount: prompt + output + thought + tool,
    },
  }
}
const converse = most => () => {
  const input = 1 + draw(most), output = 1 + draw(3000), read = draw(2) * draw(most), write = draw(2) * draw(most)
  return {
    output: { message: { role: 'assistant', content: [{ text: 'x' }] } }, stopReason: 'end_turn',
    usage: { inputTokens: input, outputTokens: output, cacheReadInputTokens: read, cacheWriteInputTokens: write, totalTokens: input + output + read + write },
  }
}
const cohere = () => () => ({
  message: { role: 'assistant', content: [{ type: 'text', text: 'x' }] }, finish_reason: 'COMPLETE',
  usage: { tokens: { input_tokens: 1 + draw(9000), output_tokens: 1 + draw(3000) } },
})

add('openai', 'openai', 'chat', ['gpt-4o', 'gpt-4o-mini', 'gpt-5', 'gpt-5-mini', 'gpt-4.1', 'o4-mini', 'gpt-4o-2024-08-06'], [...today, ...today, ...today], chat())
add('openai', 'openai', 'chat', ['o3'], ['2025-06-09T23:00:00Z', '2025-06-10T01:00:00Z', ...today], chat())
add('openai', 'openai', 'responses', ['gpt-5.6-luna', 'gpt-5.6-sol', 'gpt-5.6-terra'], ['2026-07-29T12:00:00Z', '2026-07-30T12:00:00Z', '2026-08-21T00:00:01Z', ...today, ...today], responses(500000))
add('openai', 'openai', 'embeddings', ['text-embedding-3-small', 'text-embedding-3-large'], [...today, ...today], () => ({ object: 'list', data: [{ embedding: [1] }], usage: { prompt_tokens: 1 + draw(8000) } }))
add('anthropic', 'anthropic', 'default', ['claude-sonnet-4-5', 'claude-haiku-4-5-20251001', 'claude-opus-5', 'claude-3-5-haiku-latest'], [...today, ...today, ...today, ...today], messages(30000))
add('anthropic', 'anthropic', 'default', ['claude-opus-4-6', 'claude-sonnet-4-6'], ['2026-03-12T23:00:00Z', '2026-03-13T01:00:00Z', '2026-02-01T00:00:00Z', ...today], messages(200000))
add('gemini', 'google', 'default', ['gemini-2.5-flash', 'gemini-2.5-pro', 'gemini-2.5-flash-lite'], [...today, ...today, ...today, ...today], gemini(400000))
add('vertex', 'google', 'default', ['gemini-3.6-flash', 'gemini-3.8-flash'], [...today, '2026-12-31T23:59:59Z', '2027-01-01T00:00:01Z'], gemini(400000))
add('bedrock', 'aws', 'default', ['us.anthropic.claude-sonnet-4-5-20250929-v1:0', 'amazon.nova-pro-v1:0', 'amazon.nova-micro-v1:0'], [...today, ...today, ...today], converse(40000))
add('deepseek', 'deepseek', 'chat', ['deepseek-v4-flash', 'deepseek-v4-pro'], ['2026-08-01T00:30:00Z', '2026-11-20T00:59:59Z', '2026-11-20T01:00:01Z', '2026-11-20T03:59:59Z', '2026-11-20T05:00:00Z', '2026-11-20T09:00:00Z', '2026-11-20T23:00:00Z'], chat())
add('mistral', 'mistral', 'default', ['mistral-medium-latest', 'ministral-8b-latest', 'mistral-small-latest'], ['2025-12-01T12:00:00Z', '2026-06-17T12:00:00Z', ...today], chat())
add('xai', 'x-ai', 'chat', ['grok-4', 'grok-4-fast', 'grok-3-mini'], [...today, ...today, ...today], chat({ most: 200000, apart: true }))
add('groq', 'groq', 'default', ['llama-3.3-70b-versatile', 'openai/gpt-oss-120b'], [...today, ...today, ...today], chat())
add('cohere-v2', 'cohere', 'tokens', ['command-r-plus', 'command-a'], [...today, ...today], cohere())
add('moonshot', 'moonshotai', 'chat', ['kimi-k2-0905-preview', 'kimi-k2.5'], [...today, ...today], chat())
add('openrouter', 'openrouter', 'chat', ['anthropic/claude-sonnet-4.5', 'openai/gpt-4o-mini', 'google/gemma-4-31b-it'], ['2026-08-26T12:00:00Z', '2026-08-28T12:00:00Z', ...today], chat({ writes: true }))
add('azure', 'azure', 'chat', ['gpt-4o-mini', 'gpt-4o'], [...today, ...today, ...today], chat())
add('zai', 'zai', 'chat', ['glm-4.6', 'glm-5'], [...today, ...today], chat())
add('fireworks', 'fireworks', 'chat', ['accounts/fireworks/models/deepseek-v3p1', 'accounts/fireworks/models/gpt-oss-120b'], [...today, ...today], chat())
add('cerebras', 'cerebras', 'chat', ['gpt-oss-120b', 'llama3.1-8b'], [...today, ...today], chat({ thinks: false }))

for (const { vendor, provider, flavor, models, days, body } of cases) {
  const their = findProvider({ providerId: provider })
  for (const model of models) {
    for (const at of [...days, ...days]) {
      const answer = body()
      const { usage } = extractUsage(their, { ...answer, model, modelVersion: model }, flavor)
      const cost = calcPrice(usage, model, { provider: their, timestamp: new Date(at) })
      if (!cost) continue
      console.log(JSON.stringify({ vendor, model, at, usd: cost.total_price, input: usage.input_tokens, output: usage.output_tokens || 0, answer }))
    }
  }
}
