// A fetch that reads along: it keeps the frames of each stream, and splices what another server continues.

/** The frames of a body, as text without the blank line that ends each. A frame that is cut is left out. */
async function* framesOf(body) {
  const decoder = new TextDecoder();
  let buffer = "";
  for await (const chunk of body) {
    buffer += decoder.decode(chunk, { stream: true });
    const parts = buffer.split("\n\n");
    buffer = parts.pop();
    yield* parts;
  }
}

const idOf = (frame) => /^id: (.*)$/m.exec(frame)?.[1];
const hasData = (frame) => /^data:/m.test(frame);

/**
 * A fetch for one client. `seen` gets all frames, those with events, and the id of the last frame that had one.
 */
export function readingAlong(seen) {
  return async (url, init) => {
    const response = await fetch(url, init);
    seen.headers = Object.fromEntries(response.headers);
    if (!response.ok) return response;
    const [forClient, forUs] = response.body.tee();
    void (async () => {
      try {
        for await (const frame of framesOf(forUs)) note(seen, frame);
      } catch {
        // the client gets the same error
      }
    })();
    return new Response(forClient, response);
  };
}

function note(seen, frame) {
  seen.all.push(frame);
  if (hasData(frame)) seen.frames.push(frame);
  seen.lastID = idOf(frame) ?? seen.lastID;
}

/**
 * A fetch that makes one stream of many: when the connection breaks, it asks the next of `bases` for what follows the last
 * frame with an id. Frames without an id belong to the next one that has one: they reach the client with it, so a break
 * between them doubles nothing. `follow` is the path of the stream that continues.
 */
export function splicing(seen, bases, follow) {
  return async (url, init) => {
    const path = url.slice(bases[0].length); // the first request goes there
    let attempt = 0;
    let lastID;
    let body;
    const open = async () => {
      for (;;) {
        const base = bases[attempt++ % bases.length];
        try {
          const response = lastID
            ? await fetch(base + follow(init), { headers: { ...init.headers, "Last-Event-ID": lastID }, signal: init.signal })
            : await fetch(base + path, init);
          if (!response.ok) throw Object.assign(new Error(`HTTP ${response.status}: ${await response.text()}`), { response });
          return response.body;
        } catch (error) {
          if (error.response || init.signal?.aborted || attempt > 1000) throw error;
          seen.breaks++;
        }
      }
    };
    body = await open();
    async function* spliced() {
      for (;;) {
        let group = "";
        try {
          for await (const frame of framesOf(body)) {
            group += frame + "\n\n";
            if (idOf(frame) === undefined) continue;
            lastID = idOf(frame);
            for (const part of group.split("\n\n").slice(0, -1)) note(seen, part);
            yield new TextEncoder().encode(group);
            group = "";
          }
          if (group !== "") yield new TextEncoder().encode(group);
          return;
        } catch (error) {
          if (init.signal?.aborted) throw error;
          seen.breaks++;
          body = await open();
        }
      }
    }
    return new Response(ReadableStream.from(spliced()), { headers: { "content-type": "text/event-stream" } });
  };
}
