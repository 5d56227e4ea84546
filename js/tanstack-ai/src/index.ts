// Durable streams of TanStack AI in PostgreSQL. streams.ts has what users hold, stream.ts the stream of one run.

export { PostgresStreams, type OpenOptions, type PostgresStream, type PostgresStreamsOptions } from "./streams.ts";
