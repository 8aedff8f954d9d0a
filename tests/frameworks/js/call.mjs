// Calls a model of the Vercel AI SDK that a block of the page has made; what came of it goes to stdout as JSON.
import { generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { model } from "./block.mjs";

const asked = { model, prompt: "hi", maxRetries: 0 };
const weather = z.object({ city: z.string(), days: z.array(z.int()) });
const called = [];
const tools = {
  look_up_weather: tool({
    description: "The weather of the next days.",
    inputSchema: weather,
    execute: async (input) => {
      called.push(input);
      return "fine";
    },
  }),
};

const ways = {
  whole: async () => ({ text: (await generateText(asked)).text }),
  streamed: async () => {
    let text = "";
    for await (const part of streamText(asked).textStream) text += part;
    return { text };
  },
  tool: async () => ({ text: (await generateText({ ...asked, tools, stopWhen: stepCountIs(2) })).text, called }),
  object: async () => ({ object: (await generateObject({ ...asked, schema: weather })).object }),
};

console.log(JSON.stringify(await ways[process.argv[2]]()));
