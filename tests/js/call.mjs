// One chat completion through a gateway, as a user of OpenAI's JavaScript SDK writes it; what came of it goes to stdout as JSON.
import OpenAI from "openai";

const { baseURL, stream, headers, maxRetries = 0 } = JSON.parse(process.argv[2]);
const client = new OpenAI({ baseURL, apiKey: "k", maxRetries });
const asked = { model: "m", messages: [{ role: "user", content: "hi" }], stream };

async function text() {
  const answer = await client.chat.completions.create(asked, { headers });
  if (!stream) return answer.choices[0].message.content;
  let said = "";
  for await (const chunk of answer) said += chunk.choices[0]?.delta?.content ?? "";
  return said;
}

try {
  console.log(JSON.stringify({ text: await text() }));
} catch (error) {
  const { name, status, message } = error;
  console.log(JSON.stringify({ error: error.constructor.name, name, status, message, retryAfter: error.headers?.get("retry-after") }));
}
