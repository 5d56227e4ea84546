// A link to a text that copies it: byte for byte, as the server sends it.
class CopyText extends HTMLElement {
  connectedCallback() {
    const link = this.querySelector("a");
    const button = document.createElement("button");
    button.className = "plain";
    button.textContent = "Copy";
    button.onclick = async () => {
      try {
        await navigator.clipboard.writeText(await (await fetch(link.href)).text());
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not copied";
      }
      setTimeout(() => (button.textContent = "Copy"), 2000);
    };
    if (navigator.clipboard) this.append(" ", button);
  }
}
customElements.define("copy-text", CopyText);
