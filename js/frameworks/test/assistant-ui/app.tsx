// The page of assistant-ui.test.ts: a thread list, and a thread with branches. The address of the server is in the
// query of its own address.

import {
  ActionBarPrimitive, BranchPickerPrimitive, ComposerPrimitive, MessagePrimitive, ThreadListItemPrimitive, ThreadListPrimitive,
  ThreadPrimitive, useAui, useAuiState,
} from "@assistant-ui/react";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ChatRuntime } from "./chat-runtime.tsx";

function App() {
  return (
    <ChatRuntime>
      <ThreadListPrimitive.Root>
        <ThreadListPrimitive.New aria-label="New">New</ThreadListPrimitive.New>
        <ul id="threads"><ThreadListPrimitive.Items>{() => <Item />}</ThreadListPrimitive.Items></ul>
        <ul id="archive"><ThreadListPrimitive.Items archived>{() => <Item />}</ThreadListPrimitive.Items></ul>
        <Refresh />
      </ThreadListPrimitive.Root>
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Messages components={{ Message, EditComposer }} />
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input aria-label="Message" />
          <ComposerPrimitive.Send aria-label="Send">Send</ComposerPrimitive.Send>
          <ComposerPrimitive.Cancel aria-label="Stop">Stop</ComposerPrimitive.Cancel>
        </ComposerPrimitive.Root>
        <Running />
      </ThreadPrimitive.Root>
    </ChatRuntime>
  );
}

function Item() {
  const aui = useAui();
  return (
    <ThreadListItemPrimitive.Root>
      <ThreadListItemPrimitive.Trigger className="title"><ThreadListItemPrimitive.Title fallback="…" /></ThreadListItemPrimitive.Trigger>
      <button aria-label="Rename" onClick={() => aui.threadListItem.rename("Renamed")}>Rename</button>
      <ThreadListItemPrimitive.Archive aria-label="Archive">Archive</ThreadListItemPrimitive.Archive>
      <ThreadListItemPrimitive.Unarchive aria-label="Unarchive">Unarchive</ThreadListItemPrimitive.Unarchive>
      <ThreadListItemPrimitive.Delete aria-label="Delete">Delete</ThreadListItemPrimitive.Delete>
    </ThreadListItemPrimitive.Root>
  );
}

function Refresh() {
  const aui = useAui();
  return <button aria-label="Refresh" onClick={() => void aui.threads.reloadMainThread()}>Refresh</button>;
}

function Message() {
  const role = useAuiState((state) => state.message.role);
  const end = useAuiState(({ message: { status } }) => (status?.type === "incomplete" ? status.reason : undefined));
  return (
    <MessagePrimitive.Root className="message" data-role={role} data-end={end}>
      <span className="content"><MessagePrimitive.Parts components={{ Text, tools: { Fallback: Tool } }} /></span>
      <BranchPickerPrimitive.Root hideWhenSingleBranch>
        <BranchPickerPrimitive.Previous aria-label="Previous">Previous</BranchPickerPrimitive.Previous>
        <span className="branch"><BranchPickerPrimitive.Number />/<BranchPickerPrimitive.Count /></span>
        <BranchPickerPrimitive.Next aria-label="Next">Next</BranchPickerPrimitive.Next>
      </BranchPickerPrimitive.Root>
      {role === "user" && <ActionBarPrimitive.Edit aria-label="Edit">Edit</ActionBarPrimitive.Edit>}
      {role === "assistant" && <ActionBarPrimitive.Reload aria-label="Reload">Reload</ActionBarPrimitive.Reload>}
    </MessagePrimitive.Root>
  );
}

function Text({ text }: { text: string }) {
  return <>{text}</>;
}

function Tool({ toolName, argsText, result }: { toolName: string; argsText: string; result?: unknown }) {
  return <>[{toolName} {argsText} = {JSON.stringify(result)}]</>;
}

function EditComposer() {
  return (
    <ComposerPrimitive.Root className="edit">
      <ComposerPrimitive.Input aria-label="Edited message" />
      <ComposerPrimitive.Send aria-label="Save">Save</ComposerPrimitive.Send>
    </ComposerPrimitive.Root>
  );
}

function Running() {
  return <output id="state">{useAuiState((state) => (state.thread.isRunning ? "running" : state.thread.isLoading ? "loading" : "idle"))}</output>;
}

createRoot(document.getElementById("root")!).render(<StrictMode><App /></StrictMode>);
