import { type Browser, chromium } from "playwright-core";
import { requireTools } from "../skipped.ts";

/** Debian's; a browser is never downloaded. */
const CHROMIUM = "/usr/bin/chromium";

/** Nothing that the browser does by itself: it would reach the network, and take processor time from what is measured. */
const FLAGS = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** For `describe.skipIf(requireChromium())`: why there is no browser, or undefined. */
export const requireChromium = () => requireTools("browser tests", "chromium");

/** The system's Chromium without a window, with a profile of its own. Each context of it is as another person's browser. */
export function openBrowser(): Promise<Browser> {
  // Chromium's sandbox refuses to start for root.
  const chromiumSandbox = process.getuid?.() !== 0;
  return chromium.launch({ executablePath: CHROMIUM, chromiumSandbox, args: FLAGS });
}
