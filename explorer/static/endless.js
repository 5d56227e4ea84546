import { load } from "./page.js";

// A list that goes on when its end comes into view: the link to the next page is fetched, and what it
// lists is added.
class EndlessList extends HTMLElement {
  connectedCallback() {
    this.watcher = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && this.extend(), { rootMargin: "400px" });
    this.watch();
  }

  disconnectedCallback() {
    this.watcher.disconnect();
  }

  watch() {
    this.next = this.querySelector("a[rel=next]");
    this.watcher.disconnect();
    if (this.next) this.watcher.observe(this.next);
  }

  async extend() {
    const link = this.next;
    this.watcher.disconnect();
    try {
      const more = (await load(link.href)).querySelector("endless-list");
      const list = this.querySelector("[data-list], ul, tbody");
      for (const item of [...(more?.querySelector("[data-list], ul, tbody")?.children ?? [])]) list.append(document.adoptNode(item));
      const next = more?.querySelector("a[rel=next]");
      if (next) link.href = next.href;
      else link.remove();
    } catch {
      return; // the link still works
    }
    this.watch();
  }
}
customElements.define("endless-list", EndlessList);
