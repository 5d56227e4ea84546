// What the package uses of the types of CopilotKit's runtime, for builds without it. Users have the original; the tests in
// frameworks compile the package with it.

declare module "@copilotkit/runtime/v2" {
  import type { BaseEvent, Message, RunAgentInput } from "@ag-ui/client";
  import type { Observable } from "rxjs";

  export interface AgentOfRunner {
    agentId?: string;
    runAgent(input: RunAgentInput, subscriber: { onEvent(parameters: { event: BaseEvent }): void | Promise<void> }): Promise<unknown>;
    abortRun(): void;
  }

  export abstract class AgentRunner {
    abstract run(request: { threadId: string; agent: AgentOfRunner; input: RunAgentInput; persistedInputMessages?: Message[] }): Observable<BaseEvent>;
    abstract connect(request: { threadId: string; agentId?: string; headers?: Record<string, string> }): Observable<BaseEvent>;
    abstract isRunning(request: { threadId: string }): Promise<boolean>;
    abstract stop(request: { threadId: string; runId?: string }): Promise<boolean | undefined>;
  }
}
