import { statSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fakeConfig, Running, Site } from "./nodeyard.ts";

interface Granted {
  readonly lease: string;
  readonly state: string;
  readonly nodes: readonly {
    readonly id: string;
    readonly label: readonly string[];
    readonly host_keys: readonly string[];
  }[];
}
interface ListedNode {
  readonly id: string;
  readonly state: string;
  readonly locked: string;
}

describe("a Nodeyard of one process, and its clients", () => {
  let site: Site;
  let up: Running;
  beforeAll(async () => {
    site = new Site(fakeConfig({ latency: "{boot: 100}" }));
    up = await site.up();
  });
  afterAll(() => site.close());

  test("only its owner can enter the state folder and its socket", () => {
    expect(statSync(site.state).mode & 0o777).toBe(0o700);
    expect(statSync(`${site.state}/tree.sock`).mode & 0o777).toBe(0o600);
  });

  test("nodes are asked for, listed, and given back", async () => {
    const asked = site.start("request", "small:2", "large", "--wait", "--json");
    const { code, out, err } = await asked.ended;
    expect(code).toBe(0);
    const granted = JSON.parse(out) as Granted;
    expect(granted.state).toBe("granted");
    expect(granted.nodes.map(({ label }) => label)).toEqual([["small"], ["small"], ["large"]]);
    expect(granted.nodes.every(({ host_keys }) => host_keys.length > 0)).toBe(true);
    for (const { id } of granted.nodes)
      expect(err).toMatch(new RegExp(`node ${id}  (building|ready|in-use)  `));
    expect(err).toMatch(/lease [0-9a-f]{12} {2}granted/);

    const nodes = await site.json<ListedNode[]>("list");
    const ours = nodes.filter(({ id }) => granted.nodes.some((node) => node.id === id));
    expect(ours.map(({ state, locked }) => [state, locked])).toEqual(Array(3).fill(["in-use", "locked"]));
    expect(await site.json("request-list")).toEqual([]);
    expect(await site.json("list", "--leases")).toMatchObject([{ id: granted.lease, state: "granted" }]);
    const info = await site.json<{ nodes: readonly object[] }>("info", "fake-cloud");
    expect(info.nodes).toHaveLength(3);

    expect(await site.run("release", granted.lease)).toMatchObject({
      code: 0,
      out: `released ${granted.lease}\n`,
    });
    await up.printed("lease.ended");
    expect(await site.json("list", "--leases")).toEqual([]);
    const again = await site.run("release", granted.lease);
    expect([again.code, again.out]).toEqual([1, ""]);
    expect(again.err).toMatch(/^nodeyard: there is no lease [0-9a-f]{12}: .*\n$/);
  });

  test("without --wait the lease's id is all", async () => {
    const { code, out } = await site.run("request", "small", "--for", "10m");
    expect(code).toBe(0);
    expect(out).toMatch(/^[0-9a-f]{12}\n$/);
    expect((await site.run("release", out.trim())).code).toBe(0);
  });

  test("a label that no pool has fails with that reason, and the labels that there are", async () => {
    const { code, err, out } = await site.run("request", "smlal", "--wait");
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(
      /nodeyard: lease [0-9a-f]{12} failed: no pool offers smlal; did you mean small\? known: large, small;/,
    );
    const unknown = await site.run("explain", "smlal");
    expect(unknown.err).toMatch(
      /^nodeyard: no pool offers smlal; did you mean small\? known: large, small; /,
    );
  });

  test("an option without effect where it stands is an error of the command line", async () => {
    for (const [words, said] of [
      [["request", "small", "--keep"], "--keep has no effect without --wait"],
      [["request", "small", "--timeout", "1s"], "--timeout has no effect without --wait"],
      [["config-validate", "--no-files"], "--no-files has no effect without --strict"],
      [["config-validate", "--no-tree"], "--no-tree has no effect without --migration"],
      [["list", "--hosts", "--pool", "main"], "cannot be used with option"],
    ] as const) {
      const { code, out, err } = await site.run(...words);
      expect([words, code, out]).toEqual([words, 2, ""]);
      expect(err).toContain(said);
    }
  });

  test("so it does without --wait, and its lease says why, also when it is gone", async () => {
    const { code, err, out } = await site.run("request", "nothing-like-it");
    expect([code, out]).toEqual([1, ""]);
    const [, lease] =
      /^nodeyard: lease ([0-9a-f]{12}) failed: no pool offers nothing-like-it; known: large, small;/.exec(
        err,
      )!;
    const why = async () => {
      const { out } = await site.run("explain", lease!);
      return out;
    };
    // The journal has it a moment later.
    await expect.poll(why).toMatch(/Its request failed \(.*nothing-like-it.*not available.*\)/);
  });

  test("info of an unknown provider fails, and names the known ones", async () => {
    const { code, err, out } = await site.run("info", "fake-clout");
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(
      /^nodeyard: no launcher serves a provider "fake-clout".*; did you mean fake-cloud\? known: fake-cloud\n$/,
    );
  });

  test("lists are filtered, ages are seconds in JSON, and an unknown name is an error instead of an empty list", async () => {
    const { lease } = await site.json<Granted>("request", "small:2", "large", "--wait");
    const of = (...words: string[]) => site.json<(ListedNode & { age: number })[]>("list", ...words);
    const small = await of("--label", "small", "--state", "in-use", "--state", "hold", "--pool", "main");
    expect(small.map(({ age }) => age >= 0 && Number.isInteger(age))).toEqual([true, true]);
    expect(await of("--provider", "fake-cloud", "--state", "ready")).toEqual([]);
    expect(await site.json("list", "--leases", "--label", "large", "--state", "granted")).toMatchObject([
      { id: lease, age: expect.any(Number), time_left: expect.any(Number) },
    ]);
    for (const [words, code, text] of [
      [["--state", "raedy"], 2, "is not a state here; did you mean ready? known: "],
      [["--provider", "fake-clout"], 1, 'no launcher serves a provider "fake-clout"'],
      [
        ["--pool", "mian"],
        1,
        'no launcher has a pool "mian", and nothing in this list has it; did you mean main? known: main',
      ],
      [["--label", "smal"], 1, "known: large, small"],
      [["--leases", "--pool", "main"], 2, "cannot be used with option"],
    ] as const) {
      const ended = await site.run("list", ...words);
      expect([ended.code, ended.out]).toEqual([code, ""]);
      expect(ended.err).toContain(text);
    }
    await site.run("release", lease);
  });

  test("--watch prints again what has changed, until a signal", async () => {
    const watch = site.start("list", "--leases", "--watch", "--json");
    await expect.poll(() => watch.out).toMatch(/\]\n$/);
    const { lease } = await site.json<Granted>("request", "small", "--wait");
    await expect.poll(() => watch.out).toContain(lease);
    expect(await watch.kill("SIGINT")).toMatchObject({ code: 0, err: "" });
    await site.run("release", lease);
  });

  test("--timeout gives the request back, with a code of its own", async () => {
    const first = await site.json<Granted>("request", "small:5", "--wait");
    const { code, err } = await site.run("request", "small:5", "--wait", "--timeout", "1s");
    expect(code).toBe(124);
    expect(err).toMatch(
      /\nreleased [0-9a-f]{12}\nnodeyard: the nodes of lease \w+ were not ready within 1 s \(--timeout\): The pool's limit is used up\n$/,
    );
    await site.run("release", first.lease);
  });

  test("Ctrl-C while waiting gives the request back, also when a wrapper passes it on once more", async () => {
    // More than the pool may ever have is declined; as much as it may have, twice, has to wait.
    const first = await site.json<Granted>("request", "small:5", "--wait");
    const second = site.start("request", "small:5", "--wait");
    await second.printed("asks for");
    second.child.kill("SIGINT");
    const ended = await second.kill("SIGINT");
    expect(ended.code).toBe(1);
    expect(ended.err).toMatch(/\nreleased [0-9a-f]{12}\nnodeyard: stopped waiting: SIGINT\n$/);
    await site.run("release", first.lease);
  });

  test("a terminal that is closed while waiting gives the request back", async () => {
    const first = await site.json<Granted>("request", "small:5", "--wait");
    const asking = site.start("request", "small:5", "--wait");
    await asking.printed("asks for");
    const { code, err } = await asking.kill("SIGHUP");
    expect(code).toBe(1);
    expect(err).toMatch(/\nreleased [0-9a-f]{12}\nnodeyard: stopped waiting: SIGHUP\n$/);
    await site.run("release", first.lease);
    await expect.poll(() => site.json("list", "--leases")).toEqual([]);
  });

  test("--listen lets clients in by TCP; beyond loopback only with certificates", async () => {
    const open = new Site(fakeConfig());
    try {
      const refused = await open.run("-c", open.config, "up", "--listen", "0.0.0.0:0");
      expect([refused.code, refused.signal]).toEqual([1, null]);
      expect(refused.err).toMatch(
        /nodeyard: 0\.0\.0\.0:0 can be reached from other machines: give a certificate/,
      );
      const listening = open.start("-c", open.config, "up", "--listen", "127.0.0.1:0");
      await listening.printed("Nodeyard is up");
      expect(listening.err).toMatch(/"addresses":\["unix:[^"]+","127\.0\.0\.1:\d+"\]/);
    } finally {
      await open.close();
    }
  });
});

test("a start at a terminal prints what to type next and a link to the page; a start with a log does not", async () => {
  const site = new Site(fakeConfig());
  const words = ["--state", site.state, "-c", site.config, "up", "--webapp", "127.0.0.1:0"];
  // script (1) gives it a terminal of its own, copies what is printed there, and passes SIGTERM on.
  const terminal = ["/bin/sh", "-c", 'exec script -qefc "exec $*" /dev/null', "sh"];
  const atTerminal = new Running(words, {}, terminal);
  try {
    await expect.poll(() => atTerminal.out).toMatch(/^The page, .*: http:\/\/127\.0\.0\.1:\d+\/#ticket=/m);
    expect(atTerminal.out).toContain(`nodeyard --state ${site.state} request small --wait`);
  } finally {
    await atTerminal.kill("SIGTERM");
  }
  const daemon = site.start(...words.slice(2));
  await daemon.printed("Nodeyard is up");
  expect(daemon.out + daemon.err).not.toContain("ticket");
  await site.close();
});
