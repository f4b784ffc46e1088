import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type Call,
  HELD_FOR,
  JOB,
  listed,
  live,
  load,
  openBrowser,
  PHONE,
  PoolSite,
  requireChromium,
  type Seeded,
  seed,
  visit,
  watch,
} from "../index.ts";

/** What Chromium itself says of an answer that a test provokes. */
const REFUSED = /console: Failed to load resource: .* (401|403)/;

describe.skipIf(requireChromium())("the page of a pool in use", () => {
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

  const heading = (page: Page, name: string | RegExp) => page.getByRole("heading", { level: 1, name });
  /** Text of the first cells of all rows in sight, by the column's place. */
  const column = (page: Page, at: number) =>
    page.locator(`[role=row][data-id] > :nth-child(${at})`).allInnerTexts();

  test("a link logs one browser in, once; what it showed is not left in the address", async () => {
    const link = (await site.run("dashboard")).trim();
    await using first = await watch(browser, site.origin);
    await load(first.page, link);
    await live(first.page);
    await heading(first.page, "Overview").waitFor({ state: "attached" });
    expect(first.page.url()).not.toContain("ticket");
    expect(first.faults).toEqual([]);
    await first.page.reload();
    await live(first.page);
    await using second = await watch(browser, site.origin, {}, REFUSED);
    await load(second.page, link);
    await second.page.getByRole("alert").filter({ hasText: "nodeyard dashboard" }).waitFor();
    await second.page.getByLabel("Token").waitFor();
  });

  test("a wrong token is refused with a reason; a good one logs in, and out", async () => {
    await using watched = await watch(browser, site.origin, {}, REFUSED);
    const { page } = watched;
    await load(page, "/");
    const logIn = async (token: string) => {
      await page.getByLabel("Token").fill(token);
      await page.getByRole("button", { name: "Log in" }).click();
    };
    await logIn("nyt_operator_wrong");
    await page.getByRole("alert").waitFor();
    await logIn(operator);
    await live(page);
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByLabel("Token").waitFor();
    await page.reload();
    await page.getByLabel("Token").waitFor();
    expect(watched.faults).toEqual([]);
  });

  test("it shows what the command line lists", async () => {
    await using watched = await visit(browser, site, operator);
    const { page } = watched;
    const nodes = JSON.parse(await site.run("list", "--json")) as readonly { id: string; state: string }[];
    const count = (state: string) => nodes.filter((node) => node.state === state).length;
    const figures = page.getByRole("list", { name: "Now" });
    for (const [title, state] of [
      ["Ready", "ready"],
      ["Building", "building"],
      ["In use", "in-use"],
      ["Held", "hold"],
    ] as const)
      await figures.getByRole("link", { name: `${count(state)} ${title}`, exact: true }).waitFor();
    await page.getByRole("link", { name: "Nodes", exact: true }).click();
    await expect.poll(() => column(page, 1)).toEqual(nodes.map(({ id }) => id));
    const states = (await column(page, 2)).map((text) => text.split(" ").at(-1));
    expect(states).toEqual(nodes.map(({ state }) => state));
    expect(watched.faults).toEqual([]);
  });

  test("the overview says what a tenant has spent of its budget", async () => {
    await using visited = await visit(browser, site, operator);
    const row = visited.page.getByRole("row").filter({ hasText: "web" });
    await row.getByText("0 of 500 EUR").waitFor();
    expect(visited.faults).toEqual([]);
  });

  test("a node that becomes ready is shown without a reload", async () => {
    await using watched = await visit(browser, site, operator, "nodes?q=debian-large");
    const { page } = watched;
    let loads = 0;
    page.on("load", () => loads++);
    const before = await column(page, 1);
    const { id } = await call<{ id: string }>("/v1/leases", { labels: ["debian-large"] });
    await expect.poll(() => column(page, 1)).toHaveLength(before.length + 1);
    const node = (await column(page, 1)).find((one) => !before.includes(one))!;
    await page.locator(`[data-id="${node}"]`).getByText("in-use").waitFor();
    await call(`/v1/leases/${id}/release`, { verdict: "ok" });
    await expect.poll(() => column(page, 1)).toEqual(before);
    expect(loads).toBe(0);
    expect(watched.faults).toEqual([]);
  });

  test("a request that waits says for what, and a delivered node how it was made", async () => {
    await using watched = await visit(browser, site, operator);
    const { page } = watched;
    const [waiting] = await listed(call, `/v1/leases?id=${seeded.waiting}`);
    await page.getByRole("searchbox").fill(String(waiting!.request));
    await page.getByRole("searchbox").press("Enter");
    await heading(page, `Request ${waiting!.request}`).waitFor();
    const said = JSON.parse(await site.run("explain", String(waiting!.request), "--json")) as {
      readonly waits_for: { readonly code: string; readonly meaning: string };
    };
    await page.getByText(`It waits: ${said.waits_for.meaning}`).waitFor();
    const [granted] = await listed(call, `/v1/leases?id=${seeded.granted}`);
    const [node] = granted!.nodes as readonly string[];
    await page.goto(`/#/nodes/${node}`);
    const steps = page.getByRole("region", { name: "Time line" }).getByRole("listitem");
    await steps.first().waitFor();
    expect(await steps.count()).toBeGreaterThan(2);
    await page.getByText("Console: the last lines").click();
    const end = page.getByRole("log", { name: `Console of node ${node}` });
    await expect.poll(() => end.textContent()).toContain("login:");
    expect(watched.faults).toEqual([]);
  });

  test("a machine shows what each sliver has, uses, borrows and lends, for whom, and its spares and caches", async () => {
    await using watched = await visit(browser, site, operator, "slivers");
    const { page } = watched;
    const machine = page.getByRole("region", { name: "rack-7" });
    const [lease] = await listed(call, `/v1/leases?id=${seeded.built}`);
    const [node] = lease!.nodes as readonly string[];
    const of = (text: string | RegExp) => machine.locator(".cards > li").filter({ hasText: text });
    const built = of(JOB.name).filter({ hasText: node! });
    await built.getByText("0.7 cores in use, 0.5 cores guaranteed").waitFor();
    expect(await built.getByText("960 MiB in use, 1.5 GiB at most").count()).toBe(1);
    expect(await built.getByRole("link", { name: "gitea build 4711" }).getAttribute("href")).toBe(JOB.url);
    expect(await built.getByRole("link", { name: seeded.built }).count()).toBe(1);
    expect(await of("suspended").getByText("its document holds it").count()).toBe(1);
    expect(await of("killed for memory").getByText("the kernel killed 1 process").count()).toBe(1);
    expect(await of(/0\.5 cores borrowed/).count()).toBe(2);
    const lent = of(/1 core lent/)
      .getByText(/^↳ lends cpu cap 0.5 cores to \d{10}$/)
      .first();
    expect(await lent.getByRole("link").getAttribute("href")).toMatch(/^#\/nodes\/\d{10}$/);
    const printed = await site.run("sliverd", "status", site.machine.socket, "--wide");
    expect(printed).toMatch(
      new RegExp(`${node} \\| token:operator, gitea 4711 \\| busy, running +\\| memory \\| 960 MiB`),
    );
    // What is drawn is what is said, and no two parts look alike.
    const widths = await built
      .locator("ul.having > li:nth-child(2) .track > span")
      .evaluateAll((all) => all.map((one) => [one.className, one.style.width]));
    expect(widths).toEqual([
      ["cap", "100%"],
      ["used", "62.5%"],
    ]);
    const looks = await machine.locator(".legend .track > span").evaluateAll((all) =>
      all.map((one) => {
        const { backgroundImage, backgroundColor, borderStyle } =
          one.ownerDocument.defaultView!.getComputedStyle(one);
        return [backgroundImage, backgroundColor, borderStyle].join();
      }),
    );
    expect(new Set(looks).size).toBe(5);
    expect(await machine.getByText("kept ready: 1 of the default image (running)").count()).toBe(1);
    const cache = machine.getByRole("row").filter({ hasText: "ccache" });
    expect((await cache.getByRole("cell").allTextContents()).slice(0, 3)).toEqual([
      "label=build",
      "310 MiB",
      "1 sliver",
    ]);
    expect(await cache.getByRole("link").getAttribute("href")).toMatch(/^#\/nodes\/\d{10}$/);
    const raw = built.getByText("memory cap 1.5 GiB").first();
    expect(await raw.isVisible()).toBe(false);
    await built.getByText("Details").click();
    expect(await raw.isVisible()).toBe(true);
    await page.goto("/#/providers/rack");
    await page.getByRole("link", { name: "Its machines and their slivers" }).click();
    await heading(page, /^Sliver machines of rack/).waitFor();
    await page.goto("/#/providers/east");
    await heading(page, "Provider east").waitFor();
    expect(await page.getByRole("link", { name: "Its machines" }).count()).toBe(0);
    expect(watched.faults).toEqual([]);
  });

  test("each id and name on a page leads to its own page, and a fact stands once", async () => {
    await using watched = await visit(browser, site, operator, `leases/${seeded.granted}`);
    const { page } = watched;
    const main = page.getByRole("main");
    const [granted] = await listed(call, `/v1/leases?id=${seeded.granted}`);
    const { nodes, request } = granted as unknown as { nodes: readonly string[]; request: string };
    const follow = async (name: string, title: string) => {
      await main.getByRole("link", { name, exact: true }).first().click();
      await heading(page, title).waitFor();
    };
    await follow(request, `Request ${request}`);
    await follow(seeded.granted, `Lease ${seeded.granted}`);
    await follow(nodes[0]!, `Node ${nodes[0]}`);
    await follow("east", "Provider east");
    await follow("debian-trixie", "Image debian-trixie");
    await page.goBack();
    await follow("debian-small", "Label debian-small");
    const [waiting] = await listed(call, `/v1/leases?id=${seeded.waiting}`);
    await page.goto(`/#/requests/${waiting!.request}`);
    await page.getByText(/^It waits: /).waitFor();
    const text = (await main.textContent())!;
    const reason = (await page.getByText(/^It waits: /).textContent())!.replace("It waits: ", "");
    expect(text.split(reason)).toHaveLength(2);
    expect(text).not.toMatch(/\d{4}-\d\d-\d\dT|\d\d:\d\d:\d\d/);
    const times = main.locator("time");
    expect(await times.first().getAttribute("title")).toMatch(/\d\d?:\d\d:\d\d/);
    expect(watched.faults).toEqual([]);
  });

  test("the search finds a part of a name, address or comment, and what several have in common", async () => {
    await using watched = await visit(browser, site, operator);
    const { page } = watched;
    const search = async (text: string) => {
      await page.getByRole("searchbox").first().fill(text);
      await page.getByRole("searchbox").first().press("Enter");
    };
    await search("4711");
    await heading(page, `Node ${seeded.held}`).waitFor();
    await search("TRIXIE");
    await heading(page, "Image debian-trixie").waitFor();
    await search("lab");
    await heading(page, "Provider lab").waitFor();
    await search("debian-");
    await page.getByRole("region", { name: "Labels with “debian-”" }).getByText("debian-large").waitFor();
    await page.getByRole("region", { name: "Nodes with “debian-”" }).getByText(seeded.held).waitFor();
    await search("nothing of the kind");
    await page.getByText("Nothing here is called nothing of the kind").waitFor();
    expect(watched.faults).toEqual([]);
  });

  test("an image that fails shows how its log ends, and where it is", async () => {
    await using watched = await visit(browser, site, operator, "images/centos-stream");
    const { page } = watched;
    const end = page.getByRole("log", { name: "Last lines of the log" });
    await expect.poll(() => end.textContent()).toContain("no such package: libfoo2");
    await page.getByText(/\/build-logs\/centos-stream-\w+\.log$/).waitFor();
    expect(watched.faults).toEqual([]);
  });

  test("a configuration is checked and planned with before it is put into place", async () => {
    await using watched = await visit(browser, site, operator, "plan");
    const { page } = watched;
    const field = page.getByRole("textbox", { name: "Configuration" });
    const config = readFileSync(join(site.folder, "nodepool.yaml"), "utf8");
    await field.fill(`${config}\nmisspelt: 1\n`);
    await page.getByRole("button", { name: "Check" }).click();
    const findings = page.getByRole("region", { name: "The configuration has errors" });
    await findings.getByText("misspelt").first().waitFor();
    await field.fill(config);
    await page.getByRole("main").getByRole("button", { name: "Plan" }).click();
    await page.getByRole("region", { name: "The configuration is valid" }).waitFor();
    const outcome = page.getByRole("region", { name: /^\d+ requests: today → planned$/ });
    await outcome.getByRole("row").filter({ hasText: "debian-small" }).first().waitFor();
    expect(watched.faults).toEqual([]);
  });

  test("a node is held with a reason, and released", async () => {
    const [node] = (await listed(call, "/v1/nodes?state=ready")).filter((one) => one.allocated_to === null);
    await using watched = await visit(browser, site, operator, `nodes/${node!.id}`);
    const { page } = watched;
    await page.getByRole("button", { name: "Hold" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Why").fill("fan is loud");
    await dialog.getByRole("button", { name: "Hold" }).click();
    await dialog.waitFor({ state: "detached" });
    const comments = async () =>
      (
        JSON.parse(await site.run("list", "--state", "hold", "--detail", "--json")) as {
          id: string;
          comment: string;
        }[]
      )
        .map(({ id, comment }) => [id, comment])
        .sort();
    expect(await comments()).toEqual(
      [
        [seeded.held, HELD_FOR],
        [node!.id, "fan is loud"],
      ].sort(),
    );
    await page.getByText("fan is loud").first().waitFor();
    await page.getByRole("button", { name: "Release" }).click();
    await dialog.getByRole("button", { name: "Release" }).click();
    await page.getByText("There is no such node now").waitFor();
    expect(watched.faults).toEqual([]);
  });

  test("on a phone every view is named in sight and begins at its top; the audit says who did what, and why", async () => {
    await call(`/v1/nodes/${seeded.held}/hold`, { why: "audited" });
    await using watched = await visit(browser, site, operator);
    const { page } = watched;
    await page.setViewportSize(PHONE);
    const fits = page.getByRole("navigation").evaluate((one) => one.scrollWidth <= one.clientWidth);
    expect(await fits).toBe(true);
    await page.evaluate("scrollTo(0, 200)");
    await expect.poll(() => page.evaluate("scrollY")).toBeGreaterThan(0);
    await page.getByRole("link", { name: "Audit" }).click();
    await heading(page, "Audit").waitFor();
    expect(await page.evaluate("scrollY")).toBe(0);
    const line = page.getByRole("listitem").filter({ hasText: `hold node ${seeded.held}: audited` });
    await line.getByText("token:operator").waitFor();
    expect(watched.faults).toEqual([]);
  });

  test("a lease is made, shows how to log in, and is released with a verdict", async () => {
    await using watched = await visit(browser, site, operator, "leases");
    const { page } = watched;
    await page.getByRole("button", { name: "Request nodes" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Label").selectOption("debian-large");
    await dialog.getByRole("button", { name: "Request nodes" }).click();
    await heading(page, /^Lease /).waitFor();
    const id = (await heading(page, /^Lease /).textContent())!.split(" ")[1]!;
    const ssh = page.getByRole("list", { name: "Log in" }).getByText(/^ssh /);
    await ssh.waitFor();
    const { items } = await call<{ items: { interface_ip: string; username: string }[] }>(
      `/v1/leases/${id}/nodes`,
    );
    expect(await ssh.textContent()).toContain(`${items[0]!.username}@${items[0]!.interface_ip}`);
    await page.getByRole("button", { name: "Release" }).click();
    await dialog.getByLabel("How were the nodes?").selectOption("dirty");
    await dialog.getByLabel("Why").fill("left files");
    await dialog.getByRole("button", { name: "Release" }).click();
    await page.getByText("There is no such lease now").waitFor();
    expect(await listed(call, `/v1/leases?id=${id}`)).toEqual([]);
    // The request itself is longer than its key may be.
    await page.goBack();
    await page.getByRole("button", { name: "Request nodes" }).click();
    await dialog.getByLabel("How many").fill("60");
    await dialog.getByRole("button", { name: "Request nodes" }).click();
    await heading(page, /^Lease /).waitFor();
    const audit = await listed(call, "/v1/audit");
    expect(audit.filter(({ subject }) => subject === id)).toMatchObject([
      { who: "token:operator", action: "release_lease", why: "left files", status: 204 },
    ]);
    expect(watched.faults).toEqual([]);
  });

  test("a viewer is offered nothing that changes something, and is refused it", async () => {
    const token = await site.token("viewer", "viewer");
    await using watched = await visit(browser, site, token, "", {}, REFUSED);
    const { page, context } = watched;
    const views = [`nodes/${seeded.held}`, "leases", `leases/${seeded.granted}`, "images/debian-trixie"];
    for (const view of views) {
      await page.goto(`/#/${view}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await expect.poll(() => page.getByText("Asking all launchers").count()).toBe(0);
      const names = await page.locator("main").getByRole("button").allInnerTexts();
      expect(names.join()).not.toMatch(/Hold|Release|Delete|Extend|Build|Pause|Request nodes/);
    }
    const { csrf } = (await (await context.request.get("/v1/session")).json()) as { readonly csrf: string };
    const reply = await context.request.post(`/v1/nodes/${seeded.held}/release`, {
      headers: { "x-nodeyard-csrf": csrf, origin: site.origin },
    });
    expect(reply.status()).toBe(403);
    expect(await listed(call, `/v1/nodes?id=${seeded.held}`)).toMatchObject([{ state: "hold" }]);
    expect(watched.faults).toEqual([]);
  });

  test("over kill -9 of its server it says that it is cut off, and then shows what there is now", async () => {
    // A server that is starting answers 503 until it has its tree.
    const expected = /ERR_|Failed to fetch|status of 503/;
    await using watched = await visit(browser, site, operator, "nodes", {}, expected);
    const { page } = watched;
    await site.stop("SIGKILL");
    await page.getByRole("status").filter({ hasText: "not connected" }).waitFor();
    await site.startUp();
    const { id } = await call<{ id: string }>("/v1/leases", { labels: ["debian-large"] });
    await expect.poll(() => listed(call, `/v1/leases?id=${id}`)).toMatchObject([{ state: "granted" }]);
    await live(page);
    const now = async () => (await listed(call, "/v1/nodes")).map((node) => `${node.id} ${node.state}`);
    const shown = async () => {
      const [ids, states] = [await column(page, 1), await column(page, 2)];
      return ids.map((one, at) => `${one} ${states[at]!.split(" ").at(-1)}`);
    };
    await expect.poll(async () => JSON.stringify([await shown(), await now()])).toSatisfy(isSame);
    expect(watched.faults).toEqual([]);
  });

  test("more tabs than a browser has connections are all live", async () => {
    await using watched = await visit(browser, site, operator, "nodes");
    for (let tab = 0; tab < 7; tab++) {
      const page = await watched.context.newPage();
      await load(page, "/#/nodes");
      await live(page);
      const both = async () => JSON.stringify([await column(page, 1), await column(watched.page, 1)]);
      await expect.poll(both).toSatisfy(isSame);
    }
    expect(watched.faults).toEqual([]);
  });
});

function isSame(pair: string): boolean {
  const [one, other] = JSON.parse(pair) as [unknown, unknown];
  return JSON.stringify(one) === JSON.stringify(other);
}
