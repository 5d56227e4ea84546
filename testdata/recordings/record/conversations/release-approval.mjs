// A release that needs someone's approval: TanStack AI interrupts the run before a tool that needs it, gives the messages and the state
// with the interrupt, and passes parentRunId on by itself. Its streams bend the protocol: RUN_FINISHED after each answer of the model
// with tool results behind it, and on a resume a tool result ahead of RUN_STARTED. The official client refuses them, so this conversation
// keeps its own messages.
//
//   run-1  what is in the release: reasoning, a tool
//   ├ run-2  ship it: interrupted for approval
//   │ └ run-3  approved: deployed to production
//   └ run-4  back to run-1: staging first, interrupted
//     └ run-5  denied

import { toolDefinition } from "@tanstack/ai";
import { Script, reasoning, text, toolCall } from "../scripted-model.mjs";
import { withTanStack } from "../tanstack.mjs";

const strings = (...names) => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
  required: names,
});

const listChanges = toolDefinition({
  name: "listChanges",
  description: "What changed since a version",
  inputSchema: strings("since"),
}).server(async () => ({ version: "2.4.0", changes: ["faster search", "tax rates of 2027", "no more double refunds"] }));

const deploy = toolDefinition({
  name: "deploy",
  description: "Deploys a version of the service",
  inputSchema: strings("version", "environment"),
  needsApproval: true,
}).server(async ({ environment }) => ({ deployed: true, environment, pods: 6, seconds: 41 }));

export async function releaseApproval() {
  const script = new Script();
  const events = [];
  await withTanStack({ script, tools: [listChanges, deploy], prompt: "You release the service checkout." }, async (run) => {
    const threadId = "release-checkout-2.4";
    const state = { service: "checkout", window: { opens: "09:00", closes: "16:00" } };
    const user = (id, content) => ({ id, role: "user", content });
    const turn = async (input) => {
      const answer = await run({ threadId, state, tools: [], context: [], forwardedProps: {}, ...input });
      events.push(...answer);
      return answer.map((event) => JSON.parse(event));
    };

    const question = user("user-of-run-1", "What is in the next release?");
    const reply = "checkout **2.4.0** is ready: faster search, the tax rates of 2027, and no more double refunds.";
    script.add(
      [
        reasoning("think-release", "I need the changes since the last version."),
        toolCall("changes", "listChanges", { since: "2.3.1" }),
      ],
      [text("reply-release", reply)],
    );
    const first = await turn({ runId: "run-1", messages: [question] });
    const { messageId } = first.find(({ type }) => type === "TEXT_MESSAGE_START");
    const afterFirst = [question, { id: messageId, role: "assistant", content: reply }];

    script.add([toolCall("deploy-production", "deploy", { version: "2.4.0", environment: "production" })]);
    const production = await turn({
      runId: "run-2",
      parentRunId: "run-1",
      messages: [...afterFirst, user("user-of-run-2", "Good. Ship it to production.")],
    });

    script.add([text("reply-live", "2.4.0 is live in production: 6 pods in 41 seconds, error rate unchanged.")]);
    await turn({ runId: "run-3", parentRunId: "run-2", ...answerTo(production, { approved: true }) });

    script.add([toolCall("deploy-staging", "deploy", { version: "2.4.0", environment: "staging" })]);
    const staging = await turn({
      runId: "run-4",
      parentRunId: "run-1",
      messages: [...afterFirst, user("user-of-run-4", "Better safe than sorry: staging first.")],
    });

    script.add([text("reply-denied", "Nothing was deployed, and staging still runs 2.3.1.")]);
    await turn({ runId: "run-5", parentRunId: "run-4", ...answerTo(staging, { approved: false }) });
  });
  script.assertSpent();
  return events;
}

/** The messages that an interrupted run left, and an answer to each of its interrupts. */
function answerTo(events, payload) {
  const { messages } = events.find(({ type }) => type === "MESSAGES_SNAPSHOT");
  const { outcome } = events.at(-1);
  return { messages, resume: outcome.interrupts.map(({ id }) => ({ interruptId: id, status: "resolved", payload })) };
}
