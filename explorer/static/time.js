import { load, reconcile } from "./page.js";

// The slider through the events of a run. Each step fetches the page of its event and takes its
// parts; of steps that come faster than pages do, the last one counts.
class TimeLine extends HTMLElement {
  connectedCallback() {
    this.range = this.querySelector("input[type=range]");
    this.querySelector(".show").hidden = true;
    this.range.addEventListener("input", () => this.show("n", this.range.value));
    this.addEventListener("click", (event) => {
      const link = event.target.closest("a[rel]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.show("seq", new URL(link.href).searchParams.get("seq"));
    });
    this.onKey = (event) => {
      if (event.target.closest?.("input, select, textarea, [contenteditable]") || event.altKey || event.ctrlKey || event.metaKey) return;
      const to = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
      if (!to) return;
      event.preventDefault();
      this.querySelector(`a[rel=${to}]`)?.click();
    };
    document.addEventListener("keydown", this.onKey);
  }

  disconnectedCallback() {
    document.removeEventListener("keydown", this.onKey);
  }

  // The page of an event, by its seq or by its number in the run.
  async show(name, value) {
    const url = new URL(location.href);
    url.searchParams.delete("n");
    url.searchParams.delete("seq");
    url.searchParams.set(name, value);
    this.wanted = url.href;
    if (this.isFetching) return;
    this.isFetching = true;
    try {
      while (this.shown !== this.wanted) {
        const now = this.wanted;
        this.take(await load(now), now);
      }
    } catch {
      location.href = this.wanted; // the page says why
    } finally {
      this.isFetching = false;
    }
  }

  take(page, address) {
    this.shown = address;
    const fresh = page.querySelector("time-line");
    for (const name of [".steps", ".where"]) this.querySelector(name).replaceWith(document.adoptNode(fresh.querySelector(name)));
    if (this.wanted === address) this.range.value = fresh.querySelector("input[type=range]").value;
    const url = new URL(location.href);
    url.searchParams.delete("n");
    url.searchParams.set("seq", fresh.dataset.seq);
    history.replaceState(null, "", url);
    const moment = document.getElementById("moment"), now = page.getElementById("moment");
    const scrolled = moment.querySelector(".state-text").scrollTop;
    for (const list of ["[data-list]", ".facets"]) reconcile(moment.querySelector(list), now.querySelector(list));
    moment.querySelector(".state-text").scrollTop = scrolled;
    showEnd();
    document.querySelector(".thread-head").replaceWith(document.adoptNode(page.querySelector(".thread-head")));
    this.dispatchEvent(new Event("stepped", { bubbles: true }));
  }
}

// The end of the conversation is what the event has changed.
function showEnd() {
  const list = document.querySelector("#moment .conversation");
  if (list) list.scrollTop = list.scrollHeight;
}

customElements.define("time-line", TimeLine);
if (document.getElementById("moment")) showEnd();
