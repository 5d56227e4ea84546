// Databases, servers and agents for the tests of the packages.

export { serveAgent, type Call } from "./agent.ts";
export { createDatabase, database } from "./database.ts";
export { serve, type Server } from "./serve.ts";
export { binary } from "./server.ts";
