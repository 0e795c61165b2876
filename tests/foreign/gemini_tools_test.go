package foreign

// What Portkey says otherwise of tools in Gemini's dialect.
var (
	// Not compared: the words of one are JSON Schema's, those of the other OpenAPI's.
	olderSchema = allowance{"a tool's schema stands in parameters, in the words of OpenAPI", func(ours, theirs map[string]any) bool {
		found, all := false, declarations(ours)
		for i, declaration := range declarations(theirs) {
			if declaration["parameters"] != nil && i < len(all) {
				declaration["parametersJsonSchema"], found = all[i]["parametersJsonSchema"], true
				delete(declaration, "parameters")
			}
		}
		return found
	}}
	snakeConfig = allowance{"toolConfig is spelled tool_config, and a mode that is AUTO is sent", func(_, theirs map[string]any) bool {
		config, ok := theirs["tool_config"].(map[string]any)
		if !ok {
			return false
		}
		delete(theirs, "tool_config")
		calling := fields(config["function_calling_config"])
		if mode := calling["mode"]; mode != nil && mode != "AUTO" {
			said := map[string]any{"mode": mode}
			if names := calling["allowed_function_names"]; names != nil {
				said["allowedFunctionNames"] = names
			}
			theirs["toolConfig"] = map[string]any{"functionCallingConfig": said}
		}
		return true
	}}
	// A loss: a tool's calls are not held to its schema.
	notValidated = allowance{notStrict.what, func(ours, _ map[string]any) bool {
		return drop(ours, "toolConfig", map[string]any{"functionCallingConfig": map[string]any{"mode": "VALIDATED"}})
	}}
	functionRole = allowance{"what tools gave back has the role function, which the reference does not name", func(_, theirs map[string]any) bool {
		found := false
		for _, turn := range list(theirs["contents"]) {
			if fields(turn)["role"] == "function" {
				fields(turn)["role"], found = "user", true
			}
		}
		join(theirs, "contents", "parts")
		return found
	}}
	// Losses: which call a result belongs to; and Gemini 3 refuses calls without a signature.
	nothingTied = allowance{"calls have neither ids nor a signature, and results no name of a function", func(ours, theirs map[string]any) bool {
		found := false
		eachPart(ours, func(turn, place int, part map[string]any) {
			delete(part, "thoughtSignature")
			call, result := fields(part["functionCall"]), fields(part["functionResponse"])
			delete(call, "id")
			delete(result, "id")
			if result == nil {
				found = found || call != nil
				return
			}
			their := fields(fields(partAt(theirs, turn, place))["functionResponse"])
			if their["name"] == "gateway-tool-filler-name" {
				their["name"] = result["name"]
			}
		})
		return found
	}}
	// A loss.
	wordsBeforeCalls = allowance{"words of the model before its calls are not sent", func(ours, _ map[string]any) bool {
		found := false
		for _, turn := range list(ours["contents"]) {
			var calls []any
			for _, part := range list(fields(turn)["parts"]) {
				if fields(part)["functionCall"] != nil {
					calls = append(calls, part)
				}
			}
			if all := list(fields(turn)["parts"]); len(calls) > 0 && len(calls) < len(all) {
				fields(turn)["parts"], found = calls, true
			}
		}
		return found
	}}
	geminiTools = []allowance{olderSchema, snakeConfig, notValidated, functionRole, wordsBeforeCalls, nothingTied}
)

func declarations(body map[string]any) (all []map[string]any) {
	for _, tool := range list(body["tools"]) {
		for _, declaration := range list(fields(tool)["functionDeclarations"]) {
			all = append(all, fields(declaration))
		}
	}
	return all
}

func eachPart(body map[string]any, do func(turn, place int, part map[string]any)) {
	for i, turn := range list(body["contents"]) {
		for k, part := range list(fields(turn)["parts"]) {
			do(i, k, fields(part))
		}
	}
}

func partAt(body map[string]any, turn, place int) any {
	turns := list(body["contents"])
	if turn >= len(turns) {
		return nil
	}
	if parts := list(fields(turns[turn])["parts"]); place < len(parts) {
		return parts[place]
	}
	return nil
}
