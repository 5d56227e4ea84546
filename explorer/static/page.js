// load fetches a page of the explorer as a document. Its parts can be adopted into this page, so no
// text ever becomes markup here.
export function load(url, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", url);
    request.responseType = "document";
    request.onload = () => {
      const isHere = new URL(request.responseURL).pathname === new URL(url, location.href).pathname;
      if (request.status === 200 && request.response && isHere) resolve(request.response);
      else reject(new Error(`${url}: ${request.status}`));
    };
    request.onerror = () => reject(new Error(`${url}: no answer`));
    signal?.addEventListener("abort", () => request.abort());
    request.onabort = () => reject(signal.reason);
    request.send();
  });
}
