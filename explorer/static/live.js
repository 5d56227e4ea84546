import { load, reconcile } from "./page.js";

const mostOften = 250; // milliseconds between two looks at a thread that goes on

// The conversation of a thread that goes on. When its events come, the page is fetched and what has
// changed takes its place: nothing else moves, and what is open stays open.
class LiveThread extends HTMLElement {
  connectedCallback() {
    this.onVisible = () => (document.hidden ? this.pause() : this.resume());
    document.addEventListener("visibilitychange", this.onVisible);
    if (!document.hidden) this.follow();
  }

  disconnectedCallback() {
    document.removeEventListener("visibilitychange", this.onVisible);
    this.pause();
  }

  follow() {
    if (!this.dataset.events) return;
    this.source = new EventSource(this.dataset.events);
    this.source.onmessage = () => this.refresh();
    this.source.onerror = () => this.source.readyState === EventSource.CLOSED && this.refresh();
  }

  pause() {
    this.source?.close();
    this.source = undefined;
  }

  // A page that was hidden may have missed something.
  async resume() {
    await this.refresh();
    if (!this.source) this.follow();
  }

  async refresh() {
    this.isBehind = true;
    if (this.isFetching) return;
    this.isFetching = true;
    try {
      while (this.isBehind) {
        this.isBehind = false;
        const wasAtEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
        this.take(await load(location.href));
        if (wasAtEnd) scrollTo({ top: document.documentElement.scrollHeight });
        await new Promise((done) => setTimeout(done, mostOften));
      }
    } catch {
      this.pause(); // the session may have ended; a reload shows
    } finally {
      this.isFetching = false;
    }
  }

  take(page) {
    const fresh = page.querySelector("live-thread");
    if (!fresh) return;
    this.dataset.events = fresh.dataset.events ?? "";
    reconcile(this.querySelector("[data-list]"), fresh.querySelector("[data-list]"));
    for (const name of [".thread-head", ".tree"]) {
      const old = document.querySelector(name), now = page.querySelector(name);
      if (!old || !now || old.isEqualNode(now)) continue;
      const scrolled = old.querySelector("ol")?.scrollTop;
      old.replaceWith(document.adoptNode(now));
      if (scrolled) now.querySelector("ol").scrollTop = scrolled;
    }
    document.title = page.title;
    this.dispatchEvent(new Event("refreshed", { bubbles: true }));
  }
}

customElements.define("live-thread", LiveThread);
