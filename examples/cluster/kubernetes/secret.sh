#!/usr/bin/env bash
# Makes what the members of one cluster share, and prints it as two Secrets: in `headrace` the token
# that lets them in, the authority that signs the hubs' certificates, and the join line with both; in
# `headrace-keys` the keys of providers and of the store. Keep them: whoever has the first can take
# work from your cluster, and run again this makes others.
#
#   OPENAI_API_KEY=… ./secret.sh | kubectl apply -n headrace -f -
#
# S3 keys are taken from the usual variables, if they are set; on clouds that give a pod's account
# access to a bucket there are none.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

token=$(openssl rand -hex 32)
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 7300 -subj /CN=headrace \
	-addext keyUsage=critical,keyCertSign -keyout "$dir/ca.key" -out "$dir/ca.pem" 2>/dev/null
fingerprint=$(openssl x509 -in "$dir/ca.pem" -outform der | openssl dgst -sha256 -r | cut -d' ' -f1)

hosts=
for n in 0 1 2; do hosts+=${hosts:+,}headrace-hub-$n.headrace-hub:4222; done
encoded() { base64 | tr -d '\n'; }

cat <<SECRET
apiVersion: v1
kind: Secret
metadata:
  name: headrace
  labels:
    app.kubernetes.io/name: headrace
data:
  token: $(printf %s "$token" | encoded)
  cluster: $(printf %s "nats://$token@$hosts?ca=sha256:$fingerprint" | encoded)
  ca.pem: $(encoded <"$dir/ca.pem")
  ca.key: $(encoded <"$dir/ca.key")
---
apiVersion: v1
kind: Secret
metadata:
  name: headrace-keys
  labels:
    app.kubernetes.io/name: headrace
data:
SECRET
for name in OPENAI_API_KEY ANTHROPIC_API_KEY GEMINI_API_KEY AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY; do
	if [ -n "${!name:-}" ]; then echo "  $name: $(printf %s "${!name}" | encoded)"; fi
done
