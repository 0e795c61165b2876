package sigv4_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider/auth/sigv4"
)

// Apply signs a request as it is; the body is passed separately.
func Example() {
	ctx, body := context.Background(), `{"messages":[{"role":"user","content":[{"text":"Hello"}]}]}`
	source, err := sigv4.New(sigv4.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "not-a-secret"}, "eu-central-1", sigv4.Bedrock)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"https://bedrock-runtime.eu-central-1.amazonaws.com/model/anthropic.claude-v2:1/converse", strings.NewReader(body))
	if err != nil {
		fmt.Println(err)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	if err := source.Apply(ctx, r, []byte(body)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.URL)
	_, what, _ := strings.Cut(r.Header.Get("Authorization"), ", ")
	fmt.Println(what[:len("SignedHeaders=content-type;host;x-amz-date")])
	// Output:
	// https://bedrock-runtime.eu-central-1.amazonaws.com/model/anthropic.claude-v2%3A1/converse
	// SignedHeaders=content-type;host;x-amz-date
}
