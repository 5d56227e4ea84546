// Sessions of Microsoft's Agent Framework in .NET over HTTP. The framework serialises a session as a whole, so it goes into session
// state. The key names the agent, because several agents may share a thread. GetSessionAsync returns a new object each time, as the
// framework demands. The scope is that of the token, so give each tenant an HttpClient with a token of its own, or wrap the store in
// IsolationKeyScopedAgentSessionStore, which puts the principal into the id. To detect other writers, send the ETag back in If-Match.
// Not compiled by the tests: it follows the interface of August 2026.
using System.Net;
using System.Net.Http.Json;
using System.Text.Json;
using Microsoft.Agents.AI;
using Microsoft.Agents.AI.Hosting;

/// <summary>Sessions of agents as session state of pgagui serve.</summary>
/// <param name="server">BaseAddress is that of pgagui serve; DefaultRequestHeaders has the token.</param>
public sealed class PgaguiSessionStore(HttpClient server) : AgentSessionStore
{
    public override async ValueTask SaveSessionAsync(
        AIAgent agent, string id, AgentSession session, CancellationToken cancellationToken = default)
    {
        JsonElement document = await agent.SerializeSessionAsync(session, cancellationToken: cancellationToken);
        using HttpResponseMessage response = await server.PutAsJsonAsync(PathOf(agent, id), document, cancellationToken);
        response.EnsureSuccessStatusCode();
    }

    public override async ValueTask<AgentSession> GetSessionAsync(
        AIAgent agent, string id, CancellationToken cancellationToken = default)
    {
        using HttpResponseMessage response = await server.GetAsync(PathOf(agent, id), cancellationToken);
        if (response.StatusCode == HttpStatusCode.NotFound)
        {
            return await agent.CreateSessionAsync(cancellationToken);
        }
        response.EnsureSuccessStatusCode();
        JsonElement document = await response.Content.ReadFromJsonAsync<JsonElement>(cancellationToken);
        return await agent.DeserializeSessionAsync(document, cancellationToken: cancellationToken);
    }

    public override async ValueTask DeleteSessionAsync(
        AIAgent agent, string id, CancellationToken cancellationToken = default)
    {
        using HttpResponseMessage response = await server.DeleteAsync(PathOf(agent, id), cancellationToken);
        response.EnsureSuccessStatusCode();
    }

    // An agent without a name has another Id in each process.
    private static string PathOf(AIAgent agent, string id) =>
        $"threads/{Uri.EscapeDataString(id)}/session-state/{Uri.EscapeDataString("agent-framework." + (agent.Name ?? agent.Id))}";
}
