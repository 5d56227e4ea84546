import { accessSync, constants } from "node:fs";
import { launch } from "puppeteer-core";

const chromium = process.env.PGAGUI_TEST_CHROMIUM ?? "/usr/bin/chromium";

export const hasChromium = (() => {
  try {
    accessSync(chromium, constants.X_OK);
    return true;
  } catch {
    return false;
  }
})();

/** Starts the browser of the tests. */
export const launchChromium = () => launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
