// Checks the signatures of what it is sent, with the signers of two hands: each signs the
// request as it came once more, and must come to the same. It answers in Converse's way.
//
//   node checkers.mjs REGION SERVICE ACCESS_KEY_ID SECRET_ACCESS_KEY
//
// A session token is a header like others to it: it must be signed.
import { createHash, createHmac } from "node:crypto";
import { createServer } from "node:http";
import { SignatureV4 } from "@smithy/signature-v4";
import aws4 from "aws4";

const [region, service, accessKeyId, secretAccessKey] = process.argv.slice(2);
const credentials = { accessKeyId, secretAccessKey };

class Sha256 {
  constructor(secret) {
    this.hash = secret ? createHmac("sha256", secret) : createHash("sha256");
  }
  update(chunk) {
    this.hash.update(chunk);
  }
  async digest() {
    return new Uint8Array(this.hash.digest());
  }
}

const smithy = new SignatureV4({ credentials, region, service, sha256: Sha256, applyChecksum: false });

// moment reads a date of the basic form that x-amz-date has.
const moment = (date) =>
  new Date(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));

// signed is what the request says that it has signed.
function signed(request) {
  const names = /SignedHeaders=([^, ]+)/.exec(request.headers.authorization)[1].split(";");
  const headers = {};
  for (const name of names) headers[name] = request.headers[name] ?? "";
  return headers;
}

// unsigned is what AWS demands to be signed, and is not.
function unsigned(request) {
  const has = signed(request);
  return Object.keys(request.headers).filter((name) =>
    (name === "host" || name === "content-type" || name.startsWith("x-amz-")) && !(name in has));
}

function byAws4(request, body) {
  const asked = {
    method: request.method, path: request.url, service, region, body, headers: signed(request),
    extraHeadersToIgnore: { "content-length": true },
  };
  return aws4.sign(asked, credentials).headers.Authorization;
}

async function bySmithy(request, body) {
  const [path, search] = request.url.split("?");
  const query = {};
  for (const [name, value] of new URLSearchParams(search)) query[name] = value;
  const asked = {
    method: request.method, protocol: "http:", hostname: request.headers.host, path, query, body, headers: signed(request),
  };
  const again = await smithy.sign(asked, { signingDate: moment(request.headers["x-amz-date"]) });
  return again.headers.authorization;
}

const signature = (authorization) => authorization.split(", ").map((s) => s.trim()).join(", ");

async function judge(request, body) {
  const came = signature(request.headers.authorization);
  const wrong = unsigned(request).map((name) => `${name}, which is not signed`);
  if (signature(byAws4(request, body)) !== came) wrong.push("aws4");
  if (signature(await bySmithy(request, body)) !== came) wrong.push("@smithy");
  return wrong;
}

function answer(response, wrong) {
  response.setHeader("content-type", "application/json");
  response.setHeader("x-amzn-requestid", "checked");
  if (wrong.length === 0) {
    response.end(JSON.stringify({
      output: { message: { role: "assistant", content: [{ text: "accepted" }] } },
      stopReason: "end_turn", usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 }, metrics: { latencyMs: 0 },
    }));
    return;
  }
  response.statusCode = 403;
  response.setHeader("x-amzn-errortype", "InvalidSignatureException");
  response.end(JSON.stringify({ message: `refused by ${wrong.join(", ")}` }));
}

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () =>
    judge(request, Buffer.concat(chunks)).then(
      (wrong) => answer(response, wrong),
      (fault) => answer(response, [String(fault)]),
    ));
});
server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
process.on("SIGTERM", () => process.exit(0));
