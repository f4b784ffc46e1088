/** `npm run pictures [VIEW...]`: takes the pictures of docs/images, of a seeded pool; needs Debian's chromium and pngquant. */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { DESKTOP, openBrowser, PHONE, PoolSite, seed, settled, views, visit } from "./index.ts";

const FOLDER = fileURLToPath(new URL("../../docs/images/", import.meta.url));
/** Enough for a page of flat colours, and a third of the size. */
const COLOURS = 64;
const SIZES = { desktop: DESKTOP, phone: PHONE } as const;

mkdirSync(FOLDER, { recursive: true });
await using site = await PoolSite.start();
const operator = await site.token("operator", "operator");
const call = site.as(operator);
const seeded = await seed(call, site);
await using browser = await openBrowser();
await using watched = await visit(browser, site, operator);
const { page } = watched;
const wanted = process.argv.slice(2);
for (const [name, address] of await views(call, seeded)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  await page.goto(`/#/${address}`);
  await settled(page);
  // What a view asks for besides, such as the last lines of a log.
  await sleep(1_500);
  for (const colorScheme of ["light", "dark"] as const)
    for (const [width, size] of Object.entries(SIZES)) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.setViewportSize(size);
      await page.evaluate("window.scrollTo(0, 0); document.activeElement.blur();");
      const picture = await page.screenshot({ animations: "disabled" });
      const path = `${FOLDER}page-${name}-${colorScheme}-${width}.png`;
      const words = ["--speed", "1", "--strip", "--force", "--output", path, String(COLOURS), "-"];
      const { status, error } = spawnSync("pngquant", words, { input: picture });
      if (status !== 0)
        throw new Error(`pngquant failed (${error?.message ?? status}). Run: apt-get install pngquant`);
    }
}
if (watched.faults.length > 0) throw new Error(watched.faults.join("\n"));
