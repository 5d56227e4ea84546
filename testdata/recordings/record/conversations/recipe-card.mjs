// A recipe that becomes a card: CopilotKit's open generative UI shows what the model draws while it still draws it, as an activity
// (ACTIVITY_SNAPSHOT, then ACTIVITY_DELTA). In the second run the model draws a smaller card for one person.

import { Conversation } from "../client.mjs";
import { builtInAgent, withCopilotKit } from "../copilotkit.mjs";
import { Script, text, toolCall } from "../scripted-model.mjs";

// The browser offers this tool; it has nothing to run on the server.
const generateSandboxedUi = {
  name: "generateSandboxedUi",
  description: "Shows an HTML card to the user",
  parameters: {
    type: "object",
    properties: {
      initialHeight: { type: "number" },
      placeholderMessages: { type: "array", items: { type: "string" } },
      css: { type: "string" },
      html: { type: "string" },
    },
  },
};

export async function recipeCard() {
  const script = new Script();
  let conversation;
  await withCopilotKit({ agent: builtInAgent({ script, prompt: "You are a cook." }), openGenerativeUI: true }, async (url) => {
    conversation = new Conversation({ url, threadId: "recipe-card" });

    script.add([
      text("card-intro", "Shakshuka for two, as a card for the kitchen door:"),
      toolCall("draw-card-for-two", "generateSandboxedUi", {
        initialHeight: 320,
        placeholderMessages: ["Chopping onions…", "Cracking eggs…"],
        css: "body { font-family: Georgia } h1 { color: #b3391f }",
        html:
          "<h1>Shakshuka</h1><p>Serves 2 · 25 minutes</p><ul><li>4 eggs</li><li>1 onion</li><li>2 peppers</li>" +
          "<li>400 g tomatoes</li><li>½ tsp cumin</li></ul><p>Soften, simmer, make four wells, crack in the eggs, cover.</p>",
      }),
    ]);
    await conversation.turn({ runId: "run-1", says: "A shakshuka recipe card for two, please.", tools: [generateSandboxedUi] });

    // The browser has shown the card and says so.
    conversation.addMessage({ id: "shown-1", role: "tool", toolCallId: "draw-card-for-two", content: "shown" });
    script.add([
      text("card-intro-one", "Half of everything, and a smaller pan:"),
      toolCall("draw-card-for-one", "generateSandboxedUi", {
        initialHeight: 200,
        placeholderMessages: ["Halving…"],
        css: "body { font-family: Georgia }",
        html: "<h1>Shakshuka, solo</h1><ul><li>2 eggs</li><li>½ onion</li><li>1 pepper</li><li>200 g tomatoes</li></ul>",
      }),
    ]);
    await conversation.turn({ runId: "run-2", says: "I'm alone tonight. The same for one?", tools: [generateSandboxedUi] });
  });
  script.assertSpent();
  return { events: conversation.events(), wire: conversation.wire.join("") };
}
