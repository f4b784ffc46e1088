import type { ShadowRow, ShadowSummary } from "@nodeyard/planning";
import { describe, expect, test } from "vitest";
import { requireNodepool } from "../index.ts";
import { CLOUD, INSTALL_MS, LAB, NodepoolSite } from "../site.ts";

describe.skipIf(requireNodepool())("nodeyard shadow beside a real Nodepool", () => {
  test(
    "says of each request what it would do and what Nodepool did, and leaves nothing in ZooKeeper's log",
    async () => {
      await using site = await NodepoolSite.start(CLOUD + LAB);
      const { zuul } = site;
      await site.until("Nodepool has registered its hosts", async () => (await site.nodes()).length === 2);
      const file = site.file("nodeyard.yaml", CLOUD + LAB);
      const shadow = site.run("shadow", "-c", file, "shadow", "--json");
      // All others have written by now.
      await zuul.create("/probe");
      const writers = new Set(site.log().map(({ session }) => session));
      await shadow.printed("writes nothing");
      const rows = () =>
        shadow.out
          .split("\n")
          .flatMap((line) => (line.startsWith('{"request"') ? [JSON.parse(line) as ShadowRow] : []));
      const row = async (request: string) => {
        await site.until(`${request} is told`, async () => rows().some((one) => one.request === request));
        return rows().find((one) => one.request === request)!;
      };

      // A launch of the cloud, and a board that is there.
      const small = await zuul.request(["small"]);
      await zuul.requestIs(small, "fulfilled");
      expect(await row(small)).toMatchObject({
        labels: ["small"],
        shadow: { result: "served", pool: "cloud/main", launched: 1, reused: 0 },
        tree: { result: "served", pool: "cloud/main", launched: 1, reused: 0, nodes: [expect.any(String)] },
        differences: [],
      });
      const board = await zuul.request(["board"]);
      const boards = await site.use(board);
      expect(await row(board)).toMatchObject({
        shadow: { pool: "lab/main", launched: 0, reused: 1 },
        tree: { pool: "lab/main", launched: 0, reused: 1, nodes: boards },
        differences: [],
      });

      // More than the pool may ever have: both decline.
      const many = await zuul.request(["small", "small", "small"]);
      await zuul.requestIs(many, "failed");
      expect(await row(many)).toMatchObject({
        shadow: { result: "refused", reason: expect.stringContaining("exceed") },
        tree: {
          result: "refused",
          declined_by: expect.arrayContaining([expect.stringContaining("cloud-main")]),
        },
        differences: [],
      });

      // The pool is full: Nodepool holds the request as pending, and both serve it when a node is returned.
      const [node] = await site.use(small);
      const second = await zuul.request(["small"]);
      await site.use(second);
      const third = await zuul.request(["small"]);
      await zuul.requestIs(third, "pending");
      await site.giveBack([node!]);
      await zuul.requestIs(third, "fulfilled");
      expect(await row(third)).toMatchObject({
        shadow: { result: "served", pool: "cloud/main", launched: 1 },
        tree: { result: "served", launched: 1 },
        differences: [],
      });

      const { out, code } = await shadow.kill("SIGINT");
      expect(code).toBe(0);
      const { summary } = JSON.parse(out.trim().split("\n").at(-1)!) as { summary: ShadowSummary };
      expect(summary).toMatchObject({ requests: 5, same: 5, open: 0, differences: [] });
      expect(summary.tree.wait_median).not.toBeNull();
      expect(summary.shadow.wait_median).not.toBeNull();
      expect(new Set(site.log().map(({ session }) => session))).toEqual(writers);
      expect(await zuul.exists("/nodeyard")).toBe(false);
    },
    INSTALL_MS,
  );
});
