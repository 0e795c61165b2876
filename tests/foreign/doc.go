// Package foreign tests headrace against the programs of others: the clients that providers
// publish, a mock of many providers, a gateway that translates, checkers of signatures, and
// servers with a model in them. It is a module of its own, so that their modules are not
// among the product's.
//
//	run       the script: fetches into a cache, builds, asks
//	*_test.go what is asked of mocks, translators, checkers and servers
//	clients   what the official clients get from headrace sim, and whether they know what we send
//	part      where the script has put things, and how they are started
//	node      what comes from npm: its versions, and the few lines that start it
//	ollama    ollama's version
//
// It promises that nothing of it runs, or is needed, unless FOREIGN names the folder that
// the script has filled. A part that is missing there is skipped by name. All traffic stays
// on loopback.
//
//	openai-go, anthropic-sdk-go, genai, bedrockruntime ─┬───▶ headrace sim --dialect D
//	openai, @anthropic-ai/sdk, @google/genai in node ───┤     the same whole and as a stream,
//	@langchain/openai and /anthropic, litellm's headers ┘     and through headrace serve
//	headrace run ──────────────┬─▶ aimock                        what it understood
//	                           └─▶ ollama, llama.cpp's server    a model of random weights
//	provider/auth/sigv4 ─────────▶ aws4, @smithy/signature-v4    the same signature or not
//	a chat body ───┬─▶ FromChat ──────────────┐
//	               └─▶ Portkey's gateway ─────┴─▶ the same body, except for the listed differences
package foreign
