// Package chat reads the contents of one of OpenAI's chat requests, or of a request for embeddings,
// for dialects that say the same in other words.
//
//	a chat body ── Read ──▶ Request ── FromChat of anthropic, gemini, converse ──▶ their body
//	                 │                      │
//	                 └──────────┬───────────┘
//	                            ▼
//	       *provider.Untranslatable: messages[2].content[0].type: has no counterpart here
//
// It promises that nothing is lost and nothing is invented. A field has a counterpart that says
// exactly the same, or says nothing, or the body is refused by the field's name. A body is also
// refused for an unknown name, or for one that stands twice in an object.
// Strings and numbers are carried over byte for byte, escapes as they stand. The time to read a
// body grows as its length does, and the depth is bounded.
//
// # What says nothing
//
// Null; n 1; stream, store or logprobs false; a penalty of 0; an empty logit_bias, metadata,
// tools or stop; response_format text; modalities text; service_tier auto; tool_choice as it is
// without one; parallel_tool_calls true; an image's detail auto. In messages: an empty system
// text, an empty text next to calls of tools, and tool_calls or annotations that are none.
//
// For Claude a temperature of 1 and a top_p of 1 say nothing either: they are its defaults, and
// newer models take at most one of the two. Gemini and other models of Converse have other
// defaults (Nova 0.7 and 0.9), so both are sent there.
//
// # What is exact, and what is not
//
// Text: each message and each part of one is a block of its own, in order. system and developer
// are one thing, at the beginning only. The last word must be the user's: other providers go on
// with what the model has begun, OpenAI begins anew. Neighbours of one role stay as they are but
// for Converse, which demands that roles take turns: there they become one turn of the same
// blocks. (Anthropic does so itself.)
//
// Bounds: max_tokens and max_completion_tokens are max_tokens, maxOutputTokens and
// inferenceConfig.maxTokens, which all count what a model thinks, too. A temperature above 1 is
// refused by Anthropic's dialect and Converse's, never cut. Anthropic stops at no string of
// white space, Gemini at no more than 5 strings. Only Gemini has a seed, of 32 bits.
//
// A schema for the answer (response_format json_schema) must be strict, since the others hold
// each answer to it, and have only what the provider documents to hold answers to:
//   - Anthropic output_config.format (platform.claude.com, "Structured outputs"), Converse
//     outputConfig.textFormat (Bedrock's user guide, "Get validated JSON results from models";
//     there the schema is a string): types, properties, items of which at least 0 or 1, anyOf,
//     enum and const of plain values, $ref and $defs, nine formats of strings.
//   - Gemini generationConfig.responseJsonSchema: types, properties, items and their number,
//     minimum and maximum, anyOf, enum of strings and numbers, three formats. The reference
//     (ai.google.dev, GenerationConfig) says of all else that it is not supported, and no error
//     tells so.
//
// Any JSON (json_object) is Gemini's responseMimeType alone. The others have no counterpart.
//
// A schema's name is carried over where there is a place for it (Converse). Elsewhere it is left
// out, though OpenAI demands it: it is a label of no effect on what may be answered. A schema's
// description, which a model reads, is refused there.
//
// Tools: Anthropic tools with input_schema, tool_choice auto, none, any, tool, and
// disable_parallel_tool_use for parallel_tool_calls false; Converse toolConfig with inputSchema,
// toolChoice any, tool (none and parallel_tool_calls false are refused). A schema of parameters
// is carried over whole, as it tells the model what it may say; that of a strict tool, to which
// its calls are held, must have only what an answer's may have.
// A call's arguments, a string of JSON, become the object in it. Results of one turn's calls are
// one turn of the user's, and a result in parts of text has as many blocks.
//
// In Gemini's dialect tools are functionDeclarations with parametersJsonSchema; tool_choice is
// toolConfig's mode NONE or ANY, with a name if there is one. Tools that are all strict have
// mode VALIDATED, which holds calls to their schemas as ANY does. A mix of strict tools and others
// is refused, and so is parallel_tool_calls false. A result is one text, the member output of the
// response. From Gemini 3 on the first call of a turn must have a signature. A chat of OpenAI's has
// none, so the call gets the word that Google documents for histories from elsewhere.
//
// Images stand in the body as data URLs of png, jpeg, webp or (not for Gemini) gif, in plain
// base64 with padding. Only Anthropic fetches one from an address of the web, which must begin
// with https://. A detail of low or high is refused, as only OpenAI has it.
//
// Files are PDFs in the body, as data URLs of application/pdf. They become Anthropic's document
// with the file's name as title, Gemini's inlineData and Converse's document. The name is left out
// for Gemini, which has no place for it, and for Converse. There a document's name must be unique
// and neutral to the model, so it is a number. A turn of Converse with a file must also have text.
//
// The field user is Anthropic's metadata.user_id. The field reasoning_effort has a counterpart
// where a maker names one: Gemini 2.5's thinkingBudget and Gemini 3's thinkingLevel
// (ai.google.dev, "OpenAI compatibility"). Anthropic's own door in OpenAI's shape ignores it.
//
// Embeddings are read as strictly (ReadEmbeddings): one text or a list of them, the number of
// dimensions, and vectors of numbers. OpenAI has no input_type, which says what the texts are for:
// a body may have it for a dialect that demands it, and other dialects refuse it.
//
// The provider reports the model's own refusals: a model that takes no temperature says so itself.
package chat
