import { AssistantRuntimeProvider, useAuiState, useRemoteThreadListRuntime } from "@assistant-ui/react";
import { useAgUiRuntime } from "@assistant-ui/react-ag-ui";
import { PgaguiAgent, Threads } from "@pgagui/client";
import { historyAdapter, threadListAdapter } from "@pgagui/client/assistant-ui";
import { useState, type ReactNode } from "react";

const url = "http://localhost:8080";
const threads = threadListAdapter(new Threads({ url }));

function useThreadRuntime() {
  const item = useAuiState((state) => state.threadListItem);
  const [agent] = useState(() =>
    new PgaguiAgent({ url: `${url}/agent/assistant/run`, threadId: threads.threadId(item), abort: "stop" }));
  return useAgUiRuntime({ agent, adapters: { history: historyAdapter(agent, { isNew: !item.remoteId }) } });
}

export function ChatRuntime({ children }: { children: ReactNode }) {
  const runtime = useRemoteThreadListRuntime({
    adapter: threads,
    runtimeHook: useThreadRuntime,
    initialThreadId: location.hash.slice(1) || undefined, // a reload shows the same thread
    onThreadIdChange: (id) => history.replaceState(null, "", `#${id ?? ""}`),
  });
  return <AssistantRuntimeProvider runtime={runtime}>{children}</AssistantRuntimeProvider>;
}
