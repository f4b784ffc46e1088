import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Running } from "../../../packages/nodeyard/cli/test/nodeyard.ts";
import { LoginYard, until, untilKill } from "../../login-yard.ts";
import { requireSshd } from "../../sshd/index.ts";
import { APP, GitHub } from "../server.ts";

describe.skipIf(requireSshd())("jobs of a scale set of GitHub Actions on nodes of the pool", () => {
  let github: GitHub;
  let yard: LoginYard;
  let ran: string;
  beforeAll(async () => {
    [github, yard] = [await GitHub.start(), await LoginYard.open(4)];
    ran = join(yard.site.folder, "ran");
    writeFileSync(join(yard.site.folder, "github-token"), github.token);
    writeFileSync(join(yard.site.folder, "github-key"), github.appKey);
  });
  beforeEach(() => writeFileSync(ran, ""));
  afterEach(() => yard.endConnectors());
  afterAll(async () => {
    await yard?.close();
    await github?.stop();
  });

  const byToken = () => `token-file: ${yard.site.folder}/github-token`;
  const byApp = () =>
    `app: {client-id: ${APP.clientId}, installation-id: ${APP.installation}, key-file: ${yard.site.folder}/github-key}`;

  async function connect(more = "", fault = "", login = byToken()): Promise<Running> {
    const { folder, state } = yard.site;
    const runner = `${process.execPath} ${join(import.meta.dirname, "../runner.mjs")}`;
    const file = join(folder, "connect.yaml");
    writeFileSync(
      file,
      `
nodeyard: {url: ${state}/http.sock}
ssh: {identity-file: ${yard.key}}
connectors:
  - name: hub
    system: github
    url: ${github.url}/org/repo
    ${login}
    scale-set: small-set
    label: small
    start: ${fault === "" ? "" : `NODEYARD_RUNNER_FAULT=${fault} `}${runner}
${more}`,
    );
    const running = yard.connect(file);
    await running.printed("the connectors run");
    await until(() => github.set("small-set") !== undefined);
    return running;
  }
  const set = () => github.set("small-set")!;
  const add = (lines: readonly string[]) => lines.map((line) => set().add(`echo ${line} >>${ran}`));
  const lines = () =>
    readFileSync(ran, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .sort();
  const ended = () => until(() => set().jobs.every(({ state }) => state === "done"));
  const clean = () => until(async () => set().agents.size === 0 && (await yard.leases()).length === 0);
  const commitOf = async (job: string) => {
    const { events } = (await yard.site.json("explain", job)) as {
      events: readonly { readonly event: string; readonly facts: { readonly commit?: true } }[];
    };
    return events.find(({ event }) => event === "lease.ended")?.facts.commit;
  };
  const many = (prefix: string, count: number) => Array.from({ length: count }, (_, n) => `${prefix}-${n}`);

  test("the set is made with its labels; each job runs once on a node of its own, and is found by its id", async () => {
    const connector = await connect("    runs-on: [linux, small]\n");
    expect(set().labels).toEqual(["linux", "small"]);
    const wanted = many("a", 6);
    add(wanted);
    const gate = join(yard.site.folder, "gate");
    const held = set().add(`until [ -e ${gate} ]; do sleep 0.1; done; exit 7`);
    await until(async () => {
      const { code, out } = await yard.site.run("explain", held.id);
      return code === 0 && out.includes("granted") && out.includes(held.name);
    });
    writeFileSync(gate, "");
    await ended();
    expect(lines()).toEqual(wanted);
    expect(held.result).toBe("failed");
    expect(new Set(set().jobs.map(({ runner }) => runner)).size).toBe(7);
    await clean();
    // Only what ended well is kept in caches.
    const commits = await Promise.all([set().jobs[0]!, held].map(async ({ id }) => commitOf(id)));
    expect(commits).toEqual([true, undefined]);
    expect((await connector.kill("SIGTERM")).code).toBe(0);
    // Else the next one would wait for its end.
    expect(set().session).toBeUndefined();
  });

  test("errors, lost and doubled acknowledgments and tokens that end lose and double no job", async () => {
    const connector = await connect();
    Object.assign(github.faults, { internal: 2, lostAcknowledgments: 2, expired: 2, duplicates: 2 });
    const wanted = many("f", 12);
    for (const [n, line] of wanted.entries()) {
      add([line]);
      if (n % 4 === 3) {
        github.expireAdmin();
        github.faults.internal++;
        await until(() => set().jobs.filter(({ state }) => state === "done").length >= set().jobs.length - 3);
      }
    }
    await ended();
    expect(lines()).toEqual([...wanted].sort());
    await clean();
    await connector.kill("SIGTERM");
  });

  test("kill -9 again and again: each job ran once; a session that is left over ends the wait by itself", async () => {
    let connector = await connect();
    const wanted = many("k", 12);
    const jobs = wanted.map((line) => set().add(`echo ${line} >>${ran}; sleep 0.5`));
    for (let kills = 0; jobs.some(({ state }) => state !== "done"); kills++) {
      await untilKill(kills, ended());
      await connector.kill("SIGKILL");
      connector = await connect();
      if (set().session !== undefined) await connector.printed("another session is open");
      // GitHub ends it some time after its client was last heard.
      set().session = undefined;
    }
    expect(lines()).toEqual([...wanted].sort());
    await clean();
    await connector.kill("SIGTERM");
  });

  test("a runner that never registers is replaced; a cancelled job's runner is taken back; a full pool says so", async () => {
    const deaf = await connect("    idle: 1\n", "never");
    const [job] = add(["late"]);
    await deaf.printed("it took no job in time");
    set().cancel(job!);
    await clean();
    await deaf.kill("SIGTERM");
    const connector = await connect("    full: 1\n    most: 9\n", "", byApp());
    const gate = join(yard.site.folder, "gate-2");
    for (let n = 0; n < 6; n++) set().add(`until [ -e ${gate} ]; do sleep 0.1; done`);
    // Four nodes: two runners wait, and GitHub is asked to assign no more than there are.
    await until(() => set().capacities.at(-1) === 6);
    writeFileSync(gate, "");
    await ended();
    await until(() => set().capacities.at(-1) === 9);
    await clean();
    await connector.kill("SIGTERM");
  });

  test("a job's end costs no runner its place in line", async () => {
    const connector = await connect();
    const gates = many("next", 8).map((name) => join(yard.site.folder, name));
    const jobs = gates.map((gate) => set().add(`until [ -e ${gate} ]; do sleep 0.1; done`));
    const running = () => jobs.filter(({ state }) => state === "running").length;
    await until(async () => running() === 4 && (await yard.leases()).length === 8);
    const leases = (await yard.leases()).map(({ id }) => id);
    for (const gate of gates.slice(0, 4)) writeFileSync(gate, "");
    await until(async () => (await yard.leases()).length < 8);
    for (const gate of gates) {
      writeFileSync(gate, "");
      expect(leases).toEqual(expect.arrayContaining((await yard.leases()).map(({ id }) => id)));
    }
    await ended();
    await clean();
    await connector.kill("SIGTERM");
  });

  test("a job that ends while no connector runs costs no other job its runner", async () => {
    const first = await connect();
    const gates = many("open", 3).map((name) => join(yard.site.folder, name));
    const jobs = gates.map((gate) =>
      set().add(`until [ -e ${gate} ]; do sleep 0.1; done; echo ${gate} >>${ran}`),
    );
    await until(() => jobs.every(({ state }) => state === "running"));
    await first.kill("SIGKILL");
    set().session = undefined;
    writeFileSync(gates[0]!, "");
    await until(() => jobs[0]!.state === "done");
    // GitHub tells it of two jobs, not of which runner has them, and there are three leases.
    const second = await connect();
    await until(async () => (await yard.leases()).length === 2);
    for (const gate of gates) writeFileSync(gate, "");
    await ended();
    expect(lines()).toEqual([...gates].sort());
    await clean();
    await second.kill("SIGTERM");
  });
});
