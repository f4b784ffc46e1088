import type { TakeoverVerdict } from "@nodeyard/legacy";
import { describe, expect, test } from "vitest";
import type { Running } from "../../../packages/nodeyard/cli/test/nodeyard.ts";
import { requireNodepool } from "../index.ts";
import { CLOUD, INSTALL_MS, LAB, NodepoolSite } from "../site.ts";

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

  test(
    "a lab moves there and back, with hosts in use, and a request that a Python launcher of a cloud would fail is served",
    async () => {
      await using site = await NodepoolSite.start(CLOUD + LAB);
      const { zuul } = site;
      const hosts = async () => (await site.nodes()).filter(({ provider }) => provider === "lab");
      await site.until("Nodepool has registered its hosts", async () => (await hosts()).length === 2);
      const ours = site.file("nodeyard.yaml", LAB);
      const whole = site.file("whole.yaml", CLOUD + LAB);
      const takeover = (...words: string[]) =>
        site.run("takeover", "-c", ours, "takeover", "lab", ...words, "--json");
      const [first] = await site.use(await zuul.request(["board"]));
      const [second] = await site.use(await zuul.request(["board"]));

      // Hosts in use stay, and nothing waits for one.
      const check = takeover("--check", "--from", whole);
      expect(await check.ended).toMatchObject({ code: 0 });
      expect(codes(verdicts(check)[0], "note")).toEqual(expect.arrayContaining(["node.used", "labels.gap"]));
      const waiting = await zuul.request(["board"]);
      const busy = takeover("--check");
      expect(await busy.ended).toMatchObject({ code: 1 });
      expect(codes(verdicts(busy)[0], "wait")).toEqual(["labels.gap"]);

      // Ours waits for its turn. The cloud's launcher stops, too, so that nobody declines the request.
      const launcher = site.run("launcher", "-c", ours, "launcher", "--no-webapp");
      await launcher.printed("is also served by a launcher that is not Nodeyard's");
      const there = takeover();
      await site.until("the move is followed", async () => verdicts(there).length > 0);
      await site.nodepool.signal("SIGTERM");
      await site.served("lab", "nodeyard");
      await site.restartNodepool(CLOUD);
      expect(await there.ended).toMatchObject({ code: 0 });
      for (const id of [first, second])
        expect(await zuul.record(`/nodepool/nodes/${id}`)).toMatchObject({ state: "in-use" });
      await site.giveBack([first!]);
      const third = await site.use(waiting);

      const back = takeover("--back");
      await site.until("the way back is followed", async () => verdicts(back).length > 0);
      expect(verdicts(back)[0]).toMatchObject({ done: false, safe: true });
      await launcher.kill("SIGTERM");
      await site.until("nobody serves it", async () =>
        codes(verdicts(back).at(-1), "step").includes("begin"),
      );
      site.nodepool.write(site.yaml(CLOUD + LAB));
      expect(await back.ended).toMatchObject({ code: 0 });
      await site.giveBack([second!, ...third]);
      // Each is registered once.
      await site.until("both hosts are free", async () => {
        const nodes = await hosts();
        return nodes.length === 2 && nodes.every(({ state }) => state === "ready");
      });
      expect((await hosts()).map(({ hostname }) => hostname).sort()).toEqual(["127.0.0.1", "localhost"]);
    },
    INSTALL_MS,
  );
});
