package provider

import "testing"

// The vendor's words decide whether a refusal for good concerns the whole account or one model.
func TestWhoseIsARefusalForGood(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		body    string
		kind    Kind
		account bool
	}{
		"no money":            {429, `{"error":{"code":"insufficient_quota","message":"check your plan"}}`, QuotaExhausted, true},
		"payment required":    {402, `{"error":{"message":"Insufficient Balance"}}`, QuotaExhausted, true},
		"a day's quota":       {429, `{"error":{"message":"Rate limit reached for model x on tokens per day (TPD): Limit 100000, Used 99999, Requested 5000. Please try again in 7h12m"}}`, QuotaExhausted, false},
		"a model's day":       {429, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}`, QuotaExhausted, false},
		"the key":             {401, `{"error":{"code":"invalid_api_key","message":"Incorrect API key provided"}}`, Unauthorized, true},
		"perhaps one model":   {403, `{"error":{"message":"no access to this model"}}`, Unauthorized, false},
		"a model that is not": {404, `{"error":{"code":"model_not_found","message":"no such model"}}`, ModelNotFound, false},
		"too fast":            {429, `{"error":{"code":"rate_limit_exceeded","message":"slow down"}}`, Throttled, false},
	} {
		if e := Classify(c.status, nil, []byte(c.body)); e.Kind != c.kind || e.Account != c.account {
			t.Errorf("%s: %v, of the account: %v; want %v, %v", name, e.Kind, e.Account, c.kind, c.account)
		}
	}
}
