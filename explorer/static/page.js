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

// reconcile makes the children of a list those of another one. Children with the same key and the
// same content stay as they are.
export function reconcile(list, fresh) {
  const known = new Map([...list.children].map((child) => [child.dataset.key, child]));
  let before = list.firstElementChild;
  for (const now of [...fresh.children]) {
    let old = known.get(now.dataset.key);
    known.delete(now.dataset.key);
    if (old) {
      const open = [...old.querySelectorAll("details")].map((one) => one.open);
      [...now.querySelectorAll("details")].forEach((one, at) => at < open.length && (one.open = open[at]));
      if (!old.isEqualNode(now)) {
        if (before === old) before = now;
        old.replaceWith(document.adoptNode(now));
        old = now;
      }
    } else {
      old = document.adoptNode(now);
      list.insertBefore(old, before);
    }
    if (old === before) before = before.nextElementSibling;
    else if (old.nextElementSibling !== before) list.insertBefore(old, before);
  }
  for (const gone of known.values()) gone.remove();
}
