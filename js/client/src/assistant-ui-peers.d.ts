// What assistant-ui.ts uses of assistant-ui, so that the workspace need not install it. The check of js/frameworks
// compiles assistant-ui.ts with the real declarations instead of these.

declare module "@assistant-ui/react" {
  export type ThreadMessage = { id: string; role: string; content: readonly ({ type: "text"; text: string } | { type: "other" })[] };
  type Repository<Message> = { headId?: string | null; messages: { message: Message; parentId: string | null }[] };
  type MessageLike = import("@assistant-ui/react-ag-ui").MessageLike;
  export const ExportedMessageRepository: {
    fromBranchableArray(items: readonly { message: MessageLike; parentId: string | null }[]): Repository<ThreadMessage>;
  };
  export type ThreadHistoryAdapter = {
    load(): Promise<Repository<ThreadMessage> & { state?: NonNullable<unknown>; unstable_resume?: boolean }>;
    append(item: { message: ThreadMessage; parentId: string | null }): Promise<void>;
  };
  type ThreadMetadata = {
    status: "regular" | "archived";
    remoteId: string;
    title?: string | undefined;
    lastMessageAt?: Date | undefined;
    custom?: Record<string, unknown> | undefined;
  };
  export type RemoteThreadListAdapter = {
    list(params?: { after?: string | undefined }): Promise<{ threads: ThreadMetadata[]; nextCursor?: string | undefined }>;
    fetch(threadId: string): Promise<ThreadMetadata>;
    initialize(threadId: string): Promise<{ remoteId: string }>;
    rename(remoteId: string, newTitle: string): Promise<void>;
    updateCustom?(remoteId: string, custom: Record<string, unknown> | undefined): Promise<void>;
    archive(remoteId: string): Promise<void>;
    unarchive(remoteId: string): Promise<void>;
    delete(remoteId: string): Promise<void>;
    generateTitle(remoteId: string, messages: readonly ThreadMessage[]): Promise<ReadableStream<unknown>>;
  };
}

declare module "@assistant-ui/react-ag-ui" {
  export type MessageLike = {
    id?: string;
    role: string;
    content: string | readonly unknown[];
    metadata?: object;
    status?: { type: "incomplete"; reason: "error" | "cancelled" };
  };
  export function fromAgUiMessages(messages: readonly unknown[], options?: { showThinking?: boolean }): MessageLike[];
}
