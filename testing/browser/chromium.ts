import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

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

/** What is missing on this machine, or undefined; in CI a missing browser is an error. For `describe.skipIf(requireChromium())`. */
export function requireChromium(): string | undefined {
  if (existsSync(CHROMIUM)) return undefined;
  const line = `browser tests need ${CHROMIUM}. Run: apt-get install chromium`;
  if (process.env.CI) throw new Error(line);
  process.stderr.write(`SKIPPED: ${line}\n`);
  return line;
}

/** The system's Chromium without a window, with a profile of its own. Each context of it is as another person's browser. */
export function openBrowser(): Promise<Browser> {
  // Chromium's sandbox refuses to start for root.
  const chromiumSandbox = process.getuid?.() !== 0;
  return chromium.launch({ executablePath: CHROMIUM, chromiumSandbox, args: FLAGS });
}
