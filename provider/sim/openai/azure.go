package openai

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/headrace/headrace/provider/sim/face"
)

// Azure is the same face for servers that are Azure's: clients look below Azure's path.
type Azure struct{ Face }

// Base returns the path below which Azure's clients look.
func (Azure) Base() string { return "/openai/v1" }

// address is one of Azure's, taken apart.
type address struct {
	operation  string // as in OpenAI's path
	deployment string // "": the body names it
}

const (
	azureV1  = "/openai/v1/"
	azureOld = "/openai/deployments/"
)

// azurePath reports whether a path is below Azure's root, and returns the rest of it.
func azurePath(path string) (rest string, ok bool) { return strings.CutPrefix(path, "/openai/") }

// azureAddress reads both of Azure's forms: the one that is OpenAI's below another root,
// and the older one, whose path names the deployment and whose query must name a version.
func azureAddress(u *url.URL) (address, bool) {
	if rest, ok := strings.CutPrefix(u.Path, azureV1); ok {
		return address{operation: "/v1/" + rest}, true
	}
	rest, ok := strings.CutPrefix(u.Path, azureOld)
	if !ok {
		return address{}, false
	}
	deployment, operation, found := strings.Cut(rest, "/")
	if !found || deployment == "" || u.Query().Get("api-version") == "" {
		return address{}, true
	}
	return address{operation: "/v1/" + operation, deployment: deployment}, true
}

// readAzureKey takes api-key, or Bearer with a key or a token.
func (r *request) readAzureKey(h http.Header) {
	r.key = cmp.Or(h.Get("Api-Key"), face.Bearer(h))
	r.keyless = r.key == ""
}

// azureReset returns the seconds until a reset, without a unit.
func azureReset(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

func azureError(status int, code, message string) face.Reply {
	return face.JSON(status, fmt.Appendf(nil, `{"error":{"code":%s,"message":%s}}`, face.Quote(code), face.Quote(message)))
}

func azureFault(status int) face.Reply {
	switch status {
	case http.StatusMethodNotAllowed:
		return azureError(status, "405", "Method not allowed")
	case http.StatusRequestEntityTooLarge:
		return azureError(status, "RequestEntityTooLarge", "The request body is too large.")
	}
	return azureError(status, "404", "Resource not found")
}

// refuseAsAzure has Azure's codes where they are not OpenAI's. Flaws that a model finds in a body,
// and a spent balance, are in OpenAI's words.
func (r *request) refuseAsAzure(v face.Verdict) face.Reply {
	switch v.Kind {
	case face.RateLimited, face.TooLarge:
		return azureError(http.StatusTooManyRequests, "RateLimitReached", r.azureLimit(v))
	case face.Unauthorized:
		return azureError(http.StatusUnauthorized, "401", "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.")
	case face.ModelNotFound:
		return azureError(http.StatusNotFound, "DeploymentNotFound", "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.")
	case face.Overloaded:
		return azureError(http.StatusServiceUnavailable, "503", "The service is temporarily unable to process your request. Please try again later.")
	case face.ServerError:
		return azureError(http.StatusInternalServerError, "InternalServerError", fallen)
	}
	return face.JSON(v.Status, r.errorBody(v))
}

// azureLimit names the gauge, and the wait if the verdict has one.
func (r *request) azureLimit(v face.Verdict) string {
	gauge := "call"
	if v.Dimension == face.Tokens {
		gauge = "token"
	}
	text := fmt.Sprintf("Your requests to %s in Simulated have exceeded the %s rate limit of your current pricing tier.", r.Model, gauge)
	if v.HasRetryAfter {
		text += fmt.Sprintf(" Please retry after %d seconds.", face.Seconds(v.RetryAfter))
	}
	return text
}
