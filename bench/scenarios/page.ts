import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, Page } from "playwright-core";
import { openBrowser, requireChromium, run } from "../../testing/browser/index.ts";
import { Churn } from "../lib/churn.ts";
import { Installation } from "../lib/installation.ts";
import type { Figure, Scenario } from "../lib/scenario.ts";
import { median, percentile, round } from "../lib/statistics.ts";

const CONTENTS = { nodes: 5_000, requests: 2_000, elsewhere: true };
const CHANGES_PER_SECOND = 200;
const PAGES = 20;
const BURSTS = 4;
const SCROLL_MS = 4_000;
const SAMPLE_MS = 3_000;

/** In every document before its own scripts: when its first row was there, and when all were, milliseconds since the navigation began. */
const NOTE_ROWS = `new MutationObserver(() => {
  const noted = document.documentElement.dataset;
  const rows = Number(document.querySelector("[aria-rowcount]")?.getAttribute("aria-rowcount") ?? 0);
  if (document.querySelector("[role=row][data-id]") !== null) noted.firstRowMs ??= performance.now();
  if (rows > ${CONTENTS.nodes}) noted.allRowsMs ??= performance.now();
}).observe(document, { subtree: true, childList: true, attributes: true });`;

/** Scrolls 40 pixels in each frame, and back from the end; frames per second, and the longest frame in milliseconds. */
const SCROLL = `(async () => {
  const element = document.querySelector(".scroller");
  const began = performance.now();
  let [frames, longest, last, step] = [0, 0, began, 40];
  while (last - began < ${SCROLL_MS}) {
    const now = await new Promise(requestAnimationFrame);
    frames++;
    longest = Math.max(longest, now - last);
    last = now;
    const before = element.scrollTop;
    element.scrollTop += step;
    if (element.scrollTop === before) step = -step;
  }
  return { perSecond: frames / ((last - began) / 1000), longest };
})()`;
const EMPTY = `<div class="scroller" style="height: 800px; overflow: auto"><div style="height: ${CONTENTS.nodes * 34}px"></div></div>`;

export const page: Scenario = {
  name: "page",
  about:
    "the page in Chromium beside 5,000 nodes and 2,000 requests with 200 changes a second: first rows, frames, memory, cost of 20 open pages",
  async *run({ rounds, minutes }): AsyncGenerator<Figure> {
    const missing = requireChromium();
    if (missing !== undefined) throw new Error(missing);
    await using watched = await Installation.start(CONTENTS, { web: true });
    await using browser = await openBrowser();
    const visitor = await Visitor.of(browser, watched);
    yield* cost(visitor, watched, rounds);
    await using churn = new Churn(watched.server.client, CHANGES_PER_SECOND);
    const began = performance.now();
    yield await firstRows(visitor, rounds);
    yield await scrolling(visitor, rounds);
    yield await memory(visitor, minutes);
    const perSecond = round(churn.changes / ((performance.now() - began) / 1_000));
    yield { scenario: "page", measure: "changes", perSecond, wanted: CHANGES_PER_SECOND };
  },
};

/** Who opens pages of an installation, each in a profile of its own: a browser has six connections to one server for all its tabs. */
class Visitor {
  readonly browser: Browser;
  readonly #address: string;
  readonly #token: string;

  static async of(browser: Browser, { launcher }: Installation): Promise<Visitor> {
    const made = await run("-c", launcher.config, "token", "create", "bench", "--role", "viewer", "--json");
    return new Visitor(browser, launcher.address!, (JSON.parse(made) as { readonly token: string }).token);
  }

  private constructor(browser: Browser, address: string, token: string) {
    this.browser = browser;
    this.#address = address;
    this.#token = token;
  }

  /** A page with the list of nodes; resolves when all are in it. */
  async visit(): Promise<Page> {
    const context = await this.browser.newContext({
      baseURL: this.#address,
      viewport: { width: 1440, height: 900 },
    });
    const reply = await context.request.post("/v1/session", {
      headers: { authorization: `Bearer ${this.#token}` },
      data: {},
    });
    if (!reply.ok()) throw new Error(`logging in: ${reply.status()} ${await reply.text()}`);
    await context.addInitScript(NOTE_ROWS);
    const page = await context.newPage();
    await page.goto("/#/nodes");
    await page.locator("html[data-all-rows-ms]").waitFor({ timeout: 60_000 });
    return page;
  }
}

async function firstRows(visitor: Visitor, rounds: number): Promise<Figure> {
  const [first, all]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    const page = await visitor.visit();
    const noted = page.locator("html");
    first.push(Number(await noted.getAttribute("data-first-row-ms")));
    all.push(Number(await noted.getAttribute("data-all-rows-ms")));
    await page.context().close();
  }
  return {
    scenario: "page",
    measure: "first rows",
    visits: rounds,
    firstRowMs: round(median(first)),
    firstRowMsMost: round(Math.max(...first)),
    allRowsMs: round(median(all)),
  };
}

interface Scrolled {
  readonly perSecond: number;
  readonly longest: number;
}

/** An empty page of the same height is scrolled in turn: what the machine can draw without a graphics card, beside the same load. */
async function scrolling(visitor: Visitor, rounds: number): Promise<Figure> {
  const page = await visitor.visit();
  const empty = await visitor.browser.newPage({ viewport: { width: 1440, height: 900 } });
  await empty.setContent(EMPTY);
  const [ours, theirs]: [Scrolled[], Scrolled[]] = [[], []];
  for (let round = 0; round < rounds; round++)
    for (const [one, results] of [[page, ours] as const, [empty, theirs] as const]) {
      await one.bringToFront();
      results.push(await one.evaluate<Scrolled>(SCROLL));
    }
  for (const one of [page, empty]) await one.context().close();
  const [framesPerSecond, emptyFramesPerSecond] = [ours, theirs].map((results) =>
    round(median(results.map(({ perSecond }) => perSecond))),
  ) as [number, number];
  return {
    scenario: "page",
    measure: "scrolling",
    framesPerSecond,
    emptyFramesPerSecond,
    ratio: round(framesPerSecond / emptyFramesPerSecond, 3),
    longestFrameMs: round(
      percentile(
        ours.map(({ longest }) => longest),
        0.5,
      ),
    ),
  };
}

/** What is alive after a collection, in the second and the last quarter of the time: the first fills caches. */
async function memory(visitor: Visitor, minutes: number): Promise<Figure> {
  const page = await visitor.visit();
  const devtools = await page.context().newCDPSession(page);
  const used: number[] = [];
  const elements: number[] = [];
  const began = performance.now();
  while (performance.now() - began < minutes * 60_000) {
    await sleep(SAMPLE_MS);
    await devtools.send("HeapProfiler.collectGarbage");
    used.push((await devtools.send("Runtime.getHeapUsage")).usedSize / 2 ** 20);
    elements.push((await devtools.send("Memory.getDOMCounters")).nodes);
  }
  await page.context().close();
  const quarter = Math.ceil(used.length / 4);
  const early = median(used.slice(quarter, quarter * 2));
  const late = median(used.slice(-quarter));
  return {
    scenario: "page",
    measure: "memory",
    minutes,
    earlyMib: round(early),
    lateMib: round(late),
    ratio: round(late / early, 3),
    elements: Math.max(...elements),
  };
}

/** Twenty open pages against none: two installations, which take bursts in turn. */
async function* cost(visitor: Visitor, watched: Installation, rounds: number): AsyncGenerator<Figure> {
  await using unwatched = await Installation.start(CONTENTS, { web: true });
  const pages: Page[] = [];
  for (let opened = 0; opened < PAGES; opened++) pages.push(await visitor.visit());
  for (let burst = 0; burst < rounds * BURSTS; burst++) {
    const order = burst % 2 === 0 ? [unwatched, watched] : [watched, unwatched];
    for (const one of order) await one.burst();
  }
  for (const page of pages) await page.context().close();
  const [base, beside] = [unwatched.costs(), watched.costs()];
  yield { scenario: "page", measure: "cost", pages: 0, ...base };
  yield {
    scenario: "page",
    measure: "cost",
    pages: PAGES,
    ...beside,
    cpuRatio: round(Number(beside.cpuMsPerRequest) / Number(base.cpuMsPerRequest), 3),
  };
}
