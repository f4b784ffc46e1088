import { createHmac } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { until, untilKill } from "../../login-yard.ts";
import { requireTools } from "../../skipped.ts";
import { requireSshd } from "../../sshd/index.ts";
import { freePort } from "../../zookeeper/ports.ts";
import { GITEA } from "../server.ts";
import { GiteaSite } from "../site.ts";

const skipped =
  requireSshd() ?? requireTools("Gitea tests (testing/gitea/build.sh makes it)", join(GITEA, "gitea"));

describe.skipIf(skipped)("jobs of a real Gitea on nodes of the pool", () => {
  let site: GiteaSite;
  let ran: string;
  beforeAll(async () => {
    site = await GiteaSite.open(4);
    ran = join(site.yard.site.folder, "ran");
    writeFileSync(ran, "");
  });
  afterEach(() => site.yard.endConnectors());
  afterAll(() => site?.close());

  /** Lines that jobs wrote. */
  const lines = () =>
    readFileSync(ran, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .sort();

  test("each job runs once on a node of its own, a failed one fails, and nothing is left", async () => {
    const connector = await site.connect();
    const wanted = Array.from({ length: 7 }, (_, n) => `job-${n}`);
    await site.push([...wanted.map((line) => `echo ${line} >>${ran}`), "exit 7"]);
    const jobs = await site.ended();
    expect(lines()).toEqual(wanted);
    expect(jobs.map(({ conclusion }) => conclusion).sort()).toEqual([
      "failure",
      ...wanted.map(() => "success"),
    ]);
    expect(new Set(jobs.map(({ runner_name: runner }) => runner)).size).toBe(8);
    await site.clean();
    // Only what ended well is kept in caches.
    for (const { id, conclusion } of jobs) {
      const { events } = await site.yard.site.json<{ events: { event: string; facts: { commit?: true } }[] }>(
        "explain",
        "job",
        String(id),
      );
      const kept = events.find(({ event }) => event === "lease.ended")?.facts.commit;
      expect(kept).toBe(conclusion === "success" ? true : undefined);
    }
    expect((await connector.kill("SIGTERM")).code).toBe(0);
  });

  test("people find the node of a job by the job's id, and the connector may die and come back while it runs", async () => {
    writeFileSync(ran, "");
    const gate = join(site.yard.site.folder, "gate");
    const connector = await site.connect();
    await site.push([`echo begun >>${ran}; until [ -e ${gate} ]; do sleep 0.1; done; echo done >>${ran}`]);
    await until(async () => lines().includes("begun"));
    const job = (await site.jobs()).find(({ status }) => status === "in_progress")!;
    await until(async () => {
      const { code, out } = await site.yard.site.run("explain", "job", String(job.id));
      return code === 0 && out.includes("granted");
    });
    await connector.kill("SIGKILL");
    const successor = await site.connect();
    writeFileSync(gate, "");
    const ended = await site.ended();
    expect(ended.find(({ id }) => id === job.id)?.conclusion).toBe("success");
    expect(lines()).toEqual(["begun", "done"]);
    await site.clean();
    await successor.kill("SIGTERM");
  });

  test("Gitea's webhook is waited for, with the signature of its secret", async () => {
    writeFileSync(ran, "");
    const { gitea, yard } = site;
    const port = await freePort();
    const [url, secret, file] = [`http://127.0.0.1:${port}/`, "s3cret", join(yard.site.folder, "secret")];
    writeFileSync(file, secret);
    const look = `poll: 86400\n    webhook: {listen: "127.0.0.1:${port}", secret-file: ${file}}`;
    const connector = await site.connect("", 300, look);
    const body = JSON.stringify({ action: "queued" });
    const call = async (headers: Record<string, string>) =>
      (await fetch(url, { method: "POST", body, headers: { "x-gitea-event": "workflow_job", ...headers } }))
        .status;
    const signature = (key: string) => createHmac("sha256", key).update(body).digest("hex");
    expect(await call({})).toBe(401);
    expect(await call({ "x-gitea-signature": signature("other") })).toBe(401);
    expect(await call({ "x-gitea-signature": signature(secret) })).toBe(204);
    const config = { url, secret, content_type: "json" };
    const hook = { type: "gitea", config, events: ["workflow_job"], active: true };
    const { id } = await gitea.call<{ id: number }>("POST", "/repos/admin1/r/hooks", hook);
    await site.push(["hook-0", "hook-1"].map((line) => `echo ${line} >>${ran}`));
    await site.ended();
    expect(lines()).toEqual(["hook-0", "hook-1"]);
    await site.clean();
    await gitea.call("DELETE", `/repos/admin1/r/hooks/${id}`);
    await connector.kill("SIGTERM");
  });

  test("runners whose jobs are cancelled are taken back, and one that takes no job is replaced", async () => {
    writeFileSync(ran, "");
    const deaf = await site.connect("never");
    await site.push(["echo a", "echo b", "echo c"].map((line) => `${line} >>${ran}`));
    const granted = async (count: number) => {
      const leases = await site.yard.leases();
      return leases.length === count && leases.every(({ state }) => state === "granted");
    };
    await until(() => granted(3));
    // Cancels them.
    await site.push([`echo late >>${ran}`]);
    await until(() => granted(1));
    await deaf.kill("SIGKILL");
    // Its successor finds a runner that has started and takes nothing.
    const successor = await site.connect("", 5);
    await successor.printed("it took no job in time");
    await site.ended();
    expect(lines()).toEqual(["late"]);
    await site.clean();
    await successor.kill("SIGTERM");
  });

  test("a rule that was changed ends no job of the one before, and its runners without a job go", async () => {
    writeFileSync(ran, "");
    const gate = join(site.yard.site.folder, "gate-of-rules");
    const first = await site.connect();
    await site.push([`echo begun >>${ran}; until [ -e ${gate} ]; do sleep 0.1; done; echo done >>${ran}`]);
    await until(async () => lines().includes("begun"));
    await first.kill("SIGKILL");
    const [busy] = await site.yard.leases();
    const changed = ["nodeyard-small", "nodeyard-other"];
    const second = await site.connect("never", 300, "poll: 1", changed);
    await second.printed("goes on with a runner of a rule that is gone");
    writeFileSync(gate, "");
    expect((await site.ended()).at(-1)).toMatchObject({ conclusion: "success", status: "completed" });
    expect(lines()).toEqual(["begun", "done"]);
    await site.clean();
    await site.push([`echo new >>${ran}`]);
    await until(async () => (await site.yard.leases()).some(({ state }) => state === "granted"));
    const [deaf] = await site.yard.leases();
    await second.kill("SIGKILL");
    const third = await site.connect();
    await site.ended();
    expect(lines()).toEqual(["begun", "done", "new"]);
    await site.clean();
    expect(deaf!.job!.id).not.toBe(busy!.job!.id);
    await third.kill("SIGTERM");
  });

  test("twenty jobs while the connector is killed again and again: each ran once, and nothing is left", async () => {
    writeFileSync(ran, "");
    const wanted = Array.from({ length: 20 }, (_, n) => `k-${n}`);
    await site.push(wanted.map((line) => `echo ${line} >>${ran}; sleep 0.5`));
    const over = site.ended();
    let isOver = false;
    void over.then(() => {
      isOver = true;
    });
    let kills = 0;
    for (; !isOver; kills++) {
      const connector = await site.connect();
      // While runners wait, start, work and end.
      await untilKill(kills, over);
      await connector.kill("SIGKILL");
    }
    expect(kills).toBeGreaterThan(3);
    expect(lines()).toEqual([...wanted].sort());
    const last = await site.connect();
    await site.clean();
    await last.kill("SIGTERM");
  });
});
