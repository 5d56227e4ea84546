// Databases, servers, proxies and agents for the tests of the packages.

export { serveAgent, type Call } from "./agent.ts";
export { cluster, type TestCluster } from "./cluster.ts";
export { cutProxy, type CutProxy } from "./cutproxy.ts";
export { createDatabase, database } from "./database.ts";
export { listen } from "./listen.ts";
export { isMissing } from "./needs.ts";
export { hasPooler, pooler } from "./pooler.ts";
export { serve, type Server } from "./serve.ts";
export { binary } from "./server.ts";
