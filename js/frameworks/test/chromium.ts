import { accessSync, constants } from "node:fs";

/** The browser of the tests. */
export const chromium = process.env.PGAGUI_TEST_CHROMIUM ?? "/usr/bin/chromium";

export const hasChromium = (() => {
  try {
    accessSync(chromium, constants.X_OK);
    return true;
  } catch {
    return false;
  }
})();
