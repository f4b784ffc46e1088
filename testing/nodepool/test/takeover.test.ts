import type { TakeoverVerdict } from "@nodeyard/legacy";
import { describe, expect, test } from "vitest";
import type { Running } from "../../../packages/nodeyard/cli/test/nodeyard.ts";
import { requireNodepool } from "../index.ts";
import { CLOUD, INSTALL_MS, NodepoolSite } from "../site.ts";

/** The objects that `--json` has printed so far. */
const verdicts = ({ out }: Running) =>
  out
    .split(/(?<=^\}\n)/m)
    .filter((part) => part.endsWith("}\n"))
    .map((part) => JSON.parse(part) as TakeoverVerdict);
const codes = (verdict: TakeoverVerdict | undefined, level: string) =>
  (verdict?.findings ?? []).filter((one) => one.level === level).map(({ code }) => code);

describe.skipIf(requireNodepool())("nodeyard takeover beside a real Nodepool", () => {
  test(
    "a cloud whose machines Nodeyard would not find has to be empty first; both may serve it for a moment",
    async () => {
      await using site = await NodepoolSite.start(CLOUD);
      const { zuul } = site;
      const ours = site.file("nodeyard.yaml", CLOUD);
      const takeover = (...words: string[]) =>
        site.run("takeover", "-c", ours, "takeover", "cloud", ...words, "--json");
      const nodes = await site.use(await zuul.request(["small"]));
      const full = takeover("--check");
      expect(await full.ended).toMatchObject({ code: 1 });
      expect(codes(verdicts(full)[0], "wait")).toEqual(["node.unknown"]);

      // It is used up, and the move is begun with ours.
      const there = takeover();
      site.nodepool.write(site.yaml(CLOUD.replace("max-servers: 2", "max-servers: 0")));
      await site.giveBack(nodes);
      await site.until("it is empty", async () => verdicts(there).at(-1)?.safe === true);
      expect(codes(verdicts(there).at(-1), "step")).toEqual(["begin"]);
      site.run("launcher", "-c", ours, "launcher", "--no-webapp");
      await site.served("cloud", "nodeyard");
      await site.until("both are told", async () =>
        verdicts(there).some((verdict) =>
          verdict.findings.some(({ text }) => text.startsWith("both serve cloud")),
        ),
      );
      // Nodepool declines it, and ours serves it.
      await zuul.requestIs(await zuul.request(["small"]), "fulfilled");
      site.nodepool.write(site.yaml(""));
      expect(await there.ended).toMatchObject({ code: 0 });
      expect(await site.run("other", "-c", ours, "takeover", "cloud", "--check").ended).toMatchObject({
        code: 0,
        out: expect.stringContaining("done"),
      });
    },
    INSTALL_MS,
  );

  test(
    "a request that Nodepool has taken keeps its lock until the process ends, and is served by ours then",
    async () => {
      await using site = await NodepoolSite.start(CLOUD.replace("max-servers: 2", "max-servers: 1"));
      const { zuul } = site;
      const ours = site.file("nodeyard.yaml", CLOUD);
      const takeover = (...words: string[]) =>
        site.run("takeover", "-c", ours, "takeover", ...words, "--json");
      expect(await takeover("clod").ended).toMatchObject({
        code: 1,
        err: expect.stringContaining("did you mean cloud"),
      });
      expect(await takeover("cloud", "--timeout", "1s").ended).toMatchObject({ code: 124 });
      await site.use(await zuul.request(["small"]));
      const waiting = await zuul.request(["small"]);
      await zuul.requestIs(waiting, "pending");
      const idle = takeover("cloud", "--check", "--idle");
      expect(await idle.ended).toMatchObject({ code: 1 });
      expect(codes(verdicts(idle)[0], "wait")).toContain("request.taken");

      site.nodepool.write(site.yaml(""));
      site.run("launcher", "-c", ours, "launcher", "--no-webapp");
      const there = takeover("cloud");
      // Nodepool's worker of the provider has ended, and its process keeps the lock of the request that it had taken.
      await site.until("the lock that is left is told", async () => {
        const verdict = verdicts(there).at(-1);
        return codes(verdict, "wait").includes("request.taken") && codes(verdict, "step").length === 0;
      });
      await site.restartNodepool("");
      expect(await there.ended).toMatchObject({ code: 0 });
      await zuul.requestIs(waiting, "fulfilled");
    },
    INSTALL_MS,
  );
});
