import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openBrowser, requireChromium, watch } from "../index.ts";

describe.skipIf(requireChromium())("a watched page", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.close());

  const PAGES: readonly (readonly [what: string, html: string, fault: RegExp | undefined])[] = [
    ["that keeps to itself", "<h1>nodes</h1>", undefined],
    ["with a script of its own in the text", "<script>1</script>", /policy violated: script-src/],
    [
      "with a picture from elsewhere",
      '<img src="http://127.0.0.2:9/" alt="">',
      /policy violated: img-src.*127\.0\.0\.2/,
    ],
    ["whose script throws", '<script src="/throws.js"></script>', /script: it throws/],
    [
      "that goes elsewhere",
      '<meta http-equiv="refresh" content="0;url=http://127.0.0.2:9/">',
      /another origin: http:\/\/127\.0\.0\.2:9\//,
    ],
  ];

  test.each(PAGES)("%s", async (_, html, fault) => {
    const server = createServer(({ url }, response) => {
      response.setHeader("content-security-policy", "default-src 'self'");
      if (url === "/favicon.ico") return response.writeHead(204).end();
      if (url === "/throws.js") response.setHeader("content-type", "text/javascript");
      else response.setHeader("content-type", "text/html");
      return response.end(url === "/throws.js" ? 'throw new Error("it throws")' : html);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    try {
      await using watched = await watch(browser, origin);
      await watched.page.goto("/");
      if (fault === undefined) expect(watched.faults).toEqual([]);
      else await expect.poll(() => watched.faults).toContainEqual(expect.stringMatching(fault));
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
