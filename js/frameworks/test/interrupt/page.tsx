// The page of interrupt.test.ts: a thread whose agent asks, with the useInterrupt of CopilotKit. The address of the runtime is in the
// query of its own address.

import { CopilotKitContext } from "@copilotkit/react-core/v2/context";
import { CopilotKitCoreReact, useAgent, useInterrupt } from "@copilotkit/react-core/v2/headless";
import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

const copilotkit = new CopilotKitCoreReact({ runtimeUrl: new URLSearchParams(location.search).get("runtime")! });

function Chat() {
  const { agent, isReady } = useAgent({ agentId: "helper" });
  const [errors, setErrors] = useState<string[]>([]);
  const [isConnected, setConnected] = useState(false);
  useEffect(() => copilotkit.subscribe({ onError: ({ error }) => setErrors((known) => [...known, error.message]) }).unsubscribe, []);
  useEffect(() => {
    if (isReady) {
      agent.threadId = "t";
      void copilotkit.connectAgent({ agent }).then(() => setConnected(true));
    }
  }, [agent, isReady]);
  const question = useInterrupt({
    agentId: "helper",
    renderInChat: false,
    render: ({ event, interrupt, resolve }) => (
      <p>
        <span id="question">{interrupt ? interrupt.message : String(event.value)}</span>
        {["yes", "no"].map((answer) => <button key={answer} aria-label={answer} onClick={() => void resolve(answer)}>{answer}</button>)}
      </p>
    ),
  });
  const begin = () => {
    agent.addMessage({ id: "q", role: "user", content: "Clean up." });
    void copilotkit.runAgent({ agent });
  };
  return (
    <>
      {isConnected && <button aria-label="begin" onClick={begin}>begin</button>}
      {question}
      <p id="texts">{agent.messages.map(({ content }) => String(content)).join("|")}</p>
      <p id="errors">{errors.join("|")}</p>
    </>
  );
}

createRoot(document.getElementById("root")!).render(
  <CopilotKitContext.Provider value={{ copilotkit, executingToolCallIds: new Set() }}><Chat /></CopilotKitContext.Provider>,
);
