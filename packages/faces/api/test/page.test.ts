import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ApiRig, ask, startApi } from "./rig.ts";

let site: ApiRig;
let guarded: string;
beforeAll(async () => {
  site = await startApi();
  guarded = await site.listen({ host: "127.0.0.1", port: 0, token: "secret" });
});
afterAll(() => site[Symbol.asyncDispose]());

const GZIP = { headers: { "accept-encoding": "br, gzip" } };

/** Paths that index.html names. */
async function assets(): Promise<string[]> {
  const { text } = await ask(site.url, "/");
  return [...text.matchAll(/(?:src|href|content)="(\/[^"]+)"/g)].map(([, path]) => path!);
}

describe("the page", () => {
  test("is public, also where everything else needs the listener's token", async () => {
    for (const path of ["/", ...(await assets())])
      expect(await ask(guarded, path), path).toMatchObject({ status: 200 });
    expect((await ask(guarded, "/node-list")).status).toBe(401);
  });

  test("is two scripts, one style sheet, an icon and the licences, all from here, and less than 150 kB compressed", async () => {
    const paths = await assets();
    expect(paths.map((path) => path.replace(/-[0-9a-f]{12}\./, "."))).toEqual([
      "/assets/worker.js",
      "/assets/icon.svg",
      "/assets/page.css",
      "/assets/licences.txt",
      "/assets/page.js",
    ]);
    const answers = await Promise.all(["/", ...paths].map((path) => ask(site.url, path, GZIP)));
    const bytes = answers.map(({ headers }) => Number(headers["content-length"]));
    for (const { headers } of answers) expect(headers["content-encoding"]).toBe("gzip");
    expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThan(150_000);
  });

  test("runs no inline script, and nothing from elsewhere", async () => {
    const { headers, text } = await ask(site.url, "/");
    const policy = String(headers["content-security-policy"]);
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';/);
    expect(policy).not.toMatch(/unsafe|http/);
    expect(text).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/);
  });

  test("is looked up at each visit, and what it names is kept for good", async () => {
    const { headers } = await ask(site.url, "/");
    expect(headers["cache-control"]).toBe("no-cache");
    const again = await ask(site.url, "/", { headers: { "if-none-match": headers.etag! } });
    expect(again).toMatchObject({ status: 304, text: "" });
    for (const path of await assets())
      expect((await ask(site.url, path)).headers["cache-control"], path).toMatch(
        /max-age=31536000, immutable/,
      );
  });

  test.each(["/assets/", "/assets/page.js", "/assets/..%2fpackage.json", "/index.html"])(
    "has no %s",
    async (path) => {
      expect((await ask(site.url, path)).status).toBe(404);
    },
  );

  test("is complete without compression", async () => {
    const { text, headers } = await ask(site.url, "/", { headers: { "accept-encoding": "gzip;q=0" } });
    expect(headers["content-encoding"]).toBeUndefined();
    expect(text).toContain("<!doctype html>");
  });
});
