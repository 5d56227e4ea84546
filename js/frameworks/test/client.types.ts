// What the types of @pgagui/client are to those who use them. Compiled with each version of @ag-ui/client that is
// allowed: tsconfig.client-1.json, tsconfig.client-0.json.

import { AbstractAgent, HttpAgent, type AgentSubscriber, type BaseEvent, type Message, type RunAgentInput } from "@ag-ui/client";
import { PgaguiAgent, Threads, type PgaguiAgentConfig, type Thread } from "@pgagui/client";

export const agent = new PgaguiAgent({ url: "/agent/a/run", threadId: "t", headers: async () => ({ Authorization: "Bearer x" }) });
export const asHttpAgent: HttpAgent = agent;
export const asAbstractAgent: AbstractAgent = agent;
export const cloned: PgaguiAgent = agent.clone();

/** Applications make subclasses of it, as of HttpAgent. */
export class Own extends PgaguiAgent {
  constructor(config: PgaguiAgentConfig) {
    super(config);
  }
  protected override requestInit(input: RunAgentInput): RequestInit {
    return { ...super.requestInit(input), credentials: "include" };
  }
  override run(input: RunAgentInput): ReturnType<HttpAgent["run"]> {
    return super.run(input);
  }
}

export async function use(): Promise<Message[]> {
  const subscriber: AgentSubscriber = { onEvent: ({ event }: { event: BaseEvent }) => void event.type };
  agent.use((input, next) => next.run(input));
  await agent.runAgent({ runId: "r", parentRunId: "p", forwardedProps: {}, abortController: new AbortController() }, subscriber);
  await agent.connectAgent({ stay: true }, subscriber);
  await agent.editMessage("m", { content: [{ type: "text", text: "Rome" }] });
  const { newMessages } = await agent.regenerate();
  const page: { threads: Thread[] } = await new Threads({ url: "" }).list({ archived: "only", status: "running" });
  const title: string | undefined = page.threads[0]?.title;
  // @ts-expect-error There is no such parameter.
  await agent.threads.list({ colour: "red" });
  // @ts-expect-error A parent is a text.
  await agent.runAgent({ parentRunId: 1 });
  return title ? newMessages : [];
}
