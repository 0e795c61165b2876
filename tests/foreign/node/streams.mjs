// Asks for one answer with an official client, whole or as a stream. It prints the answer as the client
// has put it together, in JSON, or the error that the client has thrown.
//
//   node streams.mjs chat|responses|messages|gemini|ChatOpenAI|ChatAnthropic URL MODEL QUESTION whole|stream
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";

const [dialect, url, model, question, way] = process.argv.slice(2);
const streams = way === "stream";
const apiKey = "key-of-a-test";
const turns = [{ role: "user", content: question }];
const openai = () => new OpenAI({ baseURL: url + "/v1", apiKey, maxRetries: 0 });

const askers = {
  async chat() {
    const body = { model, messages: turns };
    const chat = openai().chat.completions;
    const a = streams
      ? await chat.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion()
      : await chat.create(body);
    const { message, finish_reason } = a.choices[0];
    return { text: message.content, end: finish_reason, read: a.usage.prompt_tokens, written: a.usage.completion_tokens, model: a.model };
  },
  async responses() {
    const body = { model, input: question };
    const a = streams ? await openai().responses.stream(body).finalResponse() : await openai().responses.create(body);
    if (a.status === "failed") throw Object.assign(new Error(a.error.message), { code: a.error.code });
    return { text: a.output_text, end: a.status, read: a.usage.input_tokens, written: a.usage.output_tokens, model: a.model };
  },
  async messages() {
    const body = { model, max_tokens: 64, messages: turns };
    const { messages } = new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });
    const a = streams ? await messages.stream(body).finalMessage() : await messages.create(body);
    return { text: a.content[0].text, end: a.stop_reason, read: a.usage.input_tokens, written: a.usage.output_tokens, model: a.model };
  },
  async gemini() {
    const { models } = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: url } });
    const body = { model, contents: question };
    const chunks = streams ? await models.generateContentStream(body) : [await models.generateContent(body)];
    const a = { text: "" };
    for await (const c of chunks) {
      const { promptTokenCount: read, candidatesTokenCount: written } = c.usageMetadata;
      Object.assign(a, { text: a.text + c.text, end: c.candidates[0].finishReason, read, written, model: c.modelVersion });
    }
    return a;
  },
  async ChatOpenAI() {
    const { ChatOpenAI } = await import("@langchain/openai");
    return langchain(new ChatOpenAI({ model, apiKey, maxRetries: 0, configuration: { baseURL: url + "/v1" } }));
  },
  async ChatAnthropic() {
    const { ChatAnthropic } = await import("@langchain/anthropic");
    return langchain(new ChatAnthropic({ model, apiKey, maxRetries: 0, maxTokens: 64, anthropicApiUrl: url }));
  },
};

// langchain asks with a model of LangChain's. Its sum counts the first token of Anthropic's streams twice: each
// chunk says how many there are until then.
async function langchain(chat) {
  let a, written = 0;
  for await (const chunk of streams ? await chat.stream(question) : [await chat.invoke(question)]) {
    a = a ? a.concat(chunk) : chunk;
    written = Math.max(written, chunk.usage_metadata?.output_tokens ?? 0);
  }
  const { response_metadata: says, additional_kwargs: also } = a;
  return {
    text: a.text, end: says.finish_reason ?? says.stop_reason ?? also.stop_reason, model: says.model_name ?? says.model ?? also.model,
    read: a.usage_metadata.input_tokens, written,
  };
}

try {
  console.log(JSON.stringify(await askers[dialect]()));
} catch (e) {
  console.log(JSON.stringify({ error: `${e.name}: ${e.message}`, status: e.status ?? 0 }));
}
