import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Call,
  DESKTOP,
  listed,
  load,
  openBrowser,
  PHONE,
  PoolSite,
  requireChromium,
  type Seeded,
  seed,
  settled,
  views,
  visit,
  watch,
} from "../index.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const LOOKS = [
  ["light", DESKTOP],
  ["dark", DESKTOP],
  ["light", PHONE],
  ["dark", PHONE],
] as const;

describe.skipIf(requireChromium())("every view", () => {
  let browser: Browser;
  let site: PoolSite;
  let operator: string;
  let call: Call;
  let seeded: Seeded;
  beforeAll(async () => {
    [browser, site] = await Promise.all([openBrowser(), PoolSite.start()]);
    operator = await site.token("operator", "operator");
    call = site.as(operator);
    seeded = await seed(call, site);
  });
  afterAll(async () => {
    await browser?.close();
    await site?.[Symbol.asyncDispose]();
  });

  /** What axe finds, in both colours and widths, and whether something is wider than the screen. */
  async function faultsOf(page: Page, name: string): Promise<readonly string[]> {
    const found: string[] = [];
    for (const [colorScheme, size] of LOOKS) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.setViewportSize(size);
      const { violations } = await page.evaluate<AxeResults>('axe.run({ resultTypes: ["violations"] })');
      const at = `${name}, ${colorScheme}, ${size.width}`;
      for (const { id, nodes } of violations)
        for (const { html, failureSummary } of nodes)
          found.push(`${at}: ${id} ${html.slice(0, 200)} ${failureSummary}`);
      const width = await page.evaluate<number>("document.documentElement.scrollWidth");
      if (width > size.width) found.push(`${at}: ${width} pixels wide`);
    }
    return found;
  }

  // Axe looks at sixteen views four times.
  test("is accessible, dark and light, on a desktop and a phone", async () => {
    await using watched = await visit(browser, site, operator);
    const { page } = watched;
    await page.evaluate(AXE);
    const found: string[] = [];
    for (const [name, address] of await views(call, seeded)) {
      await page.goto(`/#/${address}`);
      await settled(page);
      found.push(...(await faultsOf(page, name)));
    }
    await page.goto(`/#/nodes/${seeded.held}`);
    await page.getByRole("button", { name: "Release" }).click();
    found.push(...(await faultsOf(page, "dialog")));
    expect(found).toEqual([]);
    expect(watched.faults).toEqual([]);
  });

  test("is accessible before anybody is logged in", async () => {
    await using watched = await watch(browser, site.origin, {}, /401/);
    await load(watched.page, "/");
    await watched.page.getByLabel("Token").waitFor();
    await watched.page.evaluate(AXE);
    expect(await faultsOf(watched.page, "log-in")).toEqual([]);
    expect(watched.faults).toEqual([]);
  });

  test("is reached and used by the keyboard alone", async () => {
    const [node] = (await listed(call, "/v1/nodes?state=ready")).filter((one) => one.allocated_to === null);
    await using watched = await visit(browser, site, operator);
    const { keyboard } = watched.page;
    const { page } = watched;
    const focused = (name: string | RegExp, role: "link" | "button" | "searchbox" = "button") =>
      expect
        .poll(async () => {
          const target = page.getByRole(role, { name }).first();
          return (
            (await target.count()) > 0 &&
            (await target.evaluate((one) => one === one.ownerDocument.activeElement))
          );
        })
        .toBe(true);
    const tabTo = async (name: string | RegExp, role: "link" | "button" = "button") => {
      const target = page.getByRole(role, { name, exact: typeof name === "string" }).first();
      await target.waitFor();
      for (let left = 60; left > 0; left--) {
        if (await target.evaluate((one) => one === one.ownerDocument.activeElement)) return;
        await keyboard.press("Tab");
      }
      throw new Error(`Tab never leads to ${name}`);
    };
    await tabTo("Nodes", "link");
    await keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: /^Nodes/ }).waitFor();
    await tabTo(String(node!.id), "link");
    await keyboard.press("Enter");
    await tabTo("Hold");
    await keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    // A dialog takes the focus, keeps it, and gives it back.
    await keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await focused("Hold");
    await keyboard.press("Enter");
    await page.getByRole("dialog").getByLabel("Why").focus();
    await keyboard.type("held by keyboard");
    await keyboard.press("Enter");
    await expect
      .poll(() => listed(call, `/v1/nodes?id=${node!.id}`))
      .toMatchObject([{ state: "hold", comment: "held by keyboard" }]);
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await keyboard.press("/");
    await focused(/Why is this slow/, "searchbox");
    expect(watched.faults).toEqual([]);
  });
});
