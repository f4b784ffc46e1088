import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { patient } from "../patience.ts";

export const DESKTOP = { width: 1440, height: 900 } as const;
export const PHONE = { width: 390, height: 844 } as const;

/** A net for what hangs, far beyond what a busy machine needs. */
const PATIENCE_MS = patient(60_000);

/** In every document before its own scripts: what the content security policy refuses is reported like an error. */
const REPORT_VIOLATIONS = `document.addEventListener("securitypolicyviolation", (event) =>
  console.error("policy violated: " + event.violatedDirective + " " + event.blockedURI));`;

/** A person's browser of which everything is recorded that the page must not do. */
export interface Watched extends AsyncDisposable {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Errors of scripts and of the console, violations of the content security policy, and requests to other origins. */
  readonly faults: readonly string[];
}

/**
 * When an interface of the machine comes or goes, Chromium aborts what it loads and cuts its connections, those on loopback included. Other
 * tests on the machine make interfaces.
 */
const NETWORK_CHANGED = /ERR_NETWORK_CHANGED/;

/** Loads a page, once more where the machine's network changed meanwhile. */
export async function load(page: Page, url: string): Promise<void> {
  for (let left = 5; ; left--)
    try {
      await page.goto(url);
      return;
    } catch (error) {
      if (left === 0 || !NETWORK_CHANGED.test(String(error))) throw error;
    }
}

/** A new profile that visits `origin`. What is in `allowed` is no fault: what a test itself provokes. */
export async function watch(
  browser: Browser,
  origin: string,
  options: BrowserContextOptions = {},
  allowed?: RegExp,
): Promise<Watched> {
  const context = await browser.newContext({ baseURL: origin, viewport: DESKTOP, ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const faults: string[] = [];
  const note = (fault: string) => {
    if (allowed?.test(fault) !== true && !NETWORK_CHANGED.test(fault)) faults.push(fault);
  };
  await context.addInitScript(REPORT_VIOLATIONS);
  context.on("console", (message) => {
    if (message.type() === "error") note(`console: ${message.text()} (${message.location().url})`);
  });
  context.on("weberror", (error) => note(`script: ${error.error().message}`));
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (/^(https?|wss?):$/.test(url.protocol) && url.origin !== new URL(origin).origin)
      note(`request to another origin: ${url.href}`);
  });
  const page = await context.newPage();
  return { context, page, faults, [Symbol.asyncDispose]: () => context.close() };
}
