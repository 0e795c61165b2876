// Starts aimock on a free port of loopback. What it answers repeats what it understood:
// the model, the bound, what the system and the user say.
import { LLMock } from "@copilotkit/aimock";

const text = (content) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text).join("|");

const mock = new LLMock({ host: "127.0.0.1", port: 0 });
mock.onMessage(/.*/, (asked) => ({
  content: JSON.stringify({
    model: asked.model,
    said: asked.messages.map((m) => `${m.role}: ${text(m.content)}`),
    bound: asked.max_tokens ?? asked.max_completion_tokens,
    temperature: asked.temperature,
  }),
}));
mock.onEmbedding(/.*/, { embedding: [0.25, 0.5, -0.25] });
console.log(`listening on ${await mock.start()}`);
process.on("SIGTERM", () => process.exit(0));
