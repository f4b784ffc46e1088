import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import type { PoolSite } from "./pool-site.ts";
import { load, type Watched, watch } from "./watched.ts";

/** A browser whose owner is logged in by this token, at a view: `nodes`, `leases/ID`. The overview without one. */
export async function visit(
  browser: Browser,
  { origin }: Pick<PoolSite, "origin">,
  token: string,
  view = "",
  options: BrowserContextOptions = {},
  allowed?: RegExp,
): Promise<Watched> {
  const watched = await watch(browser, origin, options, allowed);
  const headers = { authorization: `Bearer ${token}` };
  const reply = await watched.context.request.post("/v1/session", { headers, data: {} });
  if (!reply.ok()) throw new Error(`cannot log in: ${reply.status()} ${await reply.text()}`);
  await load(watched.page, `/#/${view}`);
  await live(watched.page);
  return watched;
}

/** Resolves when the page shows all there is. */
export async function live(page: Page): Promise<void> {
  await page.getByRole("status").filter({ hasText: "live" }).waitFor();
}

/** Resolves when a view shows what it is about, and explain has answered. */
export async function settled(page: Page): Promise<void> {
  await page.getByRole("heading", { level: 1 }).waitFor({ state: "attached" });
  await page.locator("main").locator("p, li, section, [role=row]").first().waitFor();
  await page.getByText("Asking all launchers").waitFor({ state: "detached" });
}
