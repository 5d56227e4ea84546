// Where to run on Saturday? The built-in agent of CopilotKit on its own, without the runtime around it: it streams text as chunks and
// leaves the input out of RUN_STARTED. The weather of three towns is asked for in parallel.

import { lastValueFrom, toArray } from "rxjs";
import { defineTool } from "@copilotkit/runtime/v2";
import { z } from "zod";
import { builtInAgent } from "../copilotkit.mjs";
import { Script, reasoning, text, toolCall } from "../scripted-model.mjs";

const threadId = "where-to-run-on-saturday";

const forecasts = {
  Keswick: { sky: "showers", celsius: 11, windKmh: 38 },
  Buxton: { sky: "overcast", celsius: 13, windKmh: 22 },
  Whitby: { sky: "sunny", celsius: 15, windKmh: 17 },
};

const getWeather = defineTool({
  name: "getWeather",
  description: "The forecast for a town",
  parameters: z.object({ town: z.string(), day: z.string() }),
  execute: async ({ town }) => forecasts[town],
});

export async function weatherTools() {
  const script = new Script();
  const agent = builtInAgent({ script, tools: [getWeather], prompt: "You help runners choose a route." });
  const input = { threadId, messages: [], state: {}, tools: [], context: [], forwardedProps: {} };

  script.add(
    [
      reasoning("think-towns", "Three candidates within two hours by train. I need Saturday's forecast for each before I compare."),
      toolCall("weather-keswick", "getWeather", { town: "Keswick", day: "Saturday" }),
      toolCall("weather-buxton", "getWeather", { town: "Buxton", day: "Saturday" }),
      toolCall("weather-whitby", "getWeather", { town: "Whitby", day: "Saturday" }),
    ],
    [
      text(
        "answer-whitby",
        "**Whitby** wins: sunny, 15 °C and only a light breeze 🌤️. Take the cliff path to Robin Hood's Bay, 11 km with a café at the end. " +
          "Keswick is wet and windy, and Buxton is merely grey.",
      ),
    ],
  );
  const question = { id: "question-1", role: "user", content: "Keswick, Buxton or Whitby: where should I run on Saturday?" };
  const first = await lastValueFrom(agent.run({ ...input, runId: "run-1", messages: [question] }).pipe(toArray()));

  script.add([text("answer-shoes", "Trail shoes with some grip: the cliff path stays muddy for days after rain 👟.")]);
  const followUp = { id: "question-2", role: "user", content: "Road shoes or trail shoes?" };
  const second = await lastValueFrom(agent.run({ ...input, runId: "run-2", messages: [question, followUp] }).pipe(toArray()));

  script.assertSpent();
  return [...first, ...second].map((event) => JSON.stringify(event));
}
