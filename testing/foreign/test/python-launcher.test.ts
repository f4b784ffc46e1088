import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { requireZooKeeper } from "../../zookeeper/index.ts";
import { type Agent, SHORT_SESSION_S } from "../agent.ts";
import { type ForeignSite, type StoreName, startForeignSite } from "../site.ts";

const STORES: readonly StoreName[] = ["zookeeper", "embedded"];
const NODE = (id: unknown) => `/nodepool/nodes/${id}`;
const REQUEST = (id: string) => `/nodepool/requests/${id}`;
const LOCK = (id: string) => `/nodepool/requests-lock/${id}`;
/** Long enough to see that nothing happens: it would happen within milliseconds. */
const NOTHING_MS = 400;
const quiet = () => new Promise((resolve) => setTimeout(resolve, NOTHING_MS));

// Numbers in titles are those of docs/contract/checks.md, "Tree and Zuul".
describe.skipIf(requireZooKeeper()).each(STORES)(
  "a Python launcher beside ours, by kazoo, on %s",
  (store) => {
    let site: ForeignSite;
    let python: Agent;
    let registered: string[] = [];

    beforeAll(async () => {
      site = await startForeignSite(store);
      python = site.agent();
    });
    afterAll(() => site?.close());
    afterEach(async () => {
      for (const path of registered) await python.delete(path);
      registered = [];
    });

    /** Registers a pool as Nodepool does; its JSON is sorted. Returns the launcher-pool id. */
    async function register(
      provider: string,
      labels: readonly string[],
      priority = 100,
      by = python,
    ): Promise<string> {
      const id = `python.example-PoolWorker.${provider}-main-${"0123456789abcdef".repeat(2)}`;
      const path = await by.create(
        "/nodepool/components/pool/python",
        component(id, provider, labels, priority, false),
        true,
        true,
      );
      registered.push(path);
      return id;
    }

    /** Writes a decline under the request's lock (docs/contract/launcher.md, "Declining"). */
    async function decline(request: string, id: string, state: "requested" | "failed"): Promise<void> {
      const contender = await python.lock(LOCK(request), true, 60);
      expect(contender).toMatch(/__lock__/);
      const record = await python.record(REQUEST(request));
      const declined = [...((record.declined_by as string[] | undefined) ?? []), id];
      await python.store(REQUEST(request), {
        ...record,
        state,
        state_time: Date.now() / 1000,
        declined_by: declined,
      });
      await python.unlock(LOCK(request));
    }

    async function ownIds(): Promise<string[]> {
      const names = await python.children("/nodepool/components/pool");
      const records = await Promise.all(
        names.map((name) => python.record(`/nodepool/components/pool/${name}`)),
      );
      return records.map(({ id }) => id as string).filter((id) => !id.startsWith("python"));
    }

    test("22: an unknown label with other pools online fails once all have declined, ours first", async () => {
      const id = await register("cloud-of-python", ["arm"]);
      const request = await python.request(["nowhere"]);
      const own = await ownIds();
      const waiting = await python.recordBecomes(
        REQUEST(request),
        (record) => ((record.declined_by ?? []) as string[]).length >= own.length,
      );
      expect(waiting).toMatchObject({ state: "requested" });
      expect([...(waiting.declined_by as string[])].sort()).toEqual([...own].sort());
      await decline(request, id, "failed");
      await quiet();
      expect(await python.record(REQUEST(request))).toMatchObject({ state: "failed" });
    });

    test("21: the other declines before us: we fail the request, each pool is named once", async () => {
      const id = await register("cloud-of-python", ["arm"]);
      const request = await python.request(["arm"]);
      await quiet();
      // While a pool can still serve it, no pool that cannot declines.
      expect((await python.record(REQUEST(request))).declined_by ?? []).toEqual([]);
      await decline(request, id, "requested");
      const failed = await python.requestIs(request, "failed");
      expect([...(failed.declined_by as string[])].sort()).toEqual([...(await ownIds()), id].sort());
    });

    test("21: the last undecided pool leaves: the request waits for its return, and is judged again by its word", async () => {
      await register("cloud-of-python", ["arm"]);
      const request = await python.request(["arm"]);
      await quiet();
      expect(await python.record(REQUEST(request))).toMatchObject({ state: "requested" });
      await python.delete(registered.pop()!);
      await quiet();
      // Its launcher may only restart (docs/contract/launcher.md, "Offers that are not there yet").
      expect(await python.record(REQUEST(request))).toMatchObject({ state: "requested" });
      const id = await register("cloud-of-python", ["arm"]);
      await decline(request, id, "requested");
      await python.requestIs(request, "failed");
    });

    test("19: we leave requests to a pool of lower priority number until it is paused", async () => {
      const id = await register("cloud-of-python", ["small"], 50);
      const request = await python.request(["small"]);
      await quiet();
      expect(await python.record(REQUEST(request))).toMatchObject({ state: "requested" });
      await python.store(registered[0]!, component(id, "cloud-of-python", ["small"], 50, true));
      await finish(python, request);
    });

    test("19: ... or until it has declined", async () => {
      const id = await register("cloud-of-python", ["small"], 50);
      const request = await python.request(["small"]);
      await quiet();
      await decline(request, id, "requested");
      const done = await finish(python, request);
      expect(done.declined_by).toEqual([id]);
    });

    test("20: a request that names a provider waits for it, and is ours after its refusal", async () => {
      const id = await register("cloud-of-python", ["small"]);
      const request = await python.request(["small"], { provider: "cloud-of-python" });
      await quiet();
      expect(await python.record(REQUEST(request))).toMatchObject({ state: "requested" });
      await decline(request, id, "requested");
      await finish(python, request);
      const elsewhere = await python.request(["small"], { provider: "not-there" });
      await finish(python, elsewhere);
    });

    test("27: a request that the other has locked is left alone, whatever we could do", async () => {
      const holder = site.agent();
      const blocker = await register("cloud-of-python", ["small"], 50);
      const request = await python.request(["small"]);
      expect(await holder.lock(LOCK(request), false)).toMatch(/__lock__/);
      await python.store(registered[0]!, component(blocker, "cloud-of-python", ["small"], 50, true));
      await quiet();
      expect(await python.record(REQUEST(request))).toMatchObject({ state: "requested" });
      await holder.unlock(LOCK(request));
      await finish(python, request);
    });

    test("26: a launcher dies with a pending request: it is put back and served, its init node goes", async () => {
      const dying = site.agent(SHORT_SESSION_S);
      await register("cloud-of-python", ["small"], 50, dying);
      const request = await python.request(["small"]);
      expect(await dying.lock(LOCK(request), false)).toMatch(/__lock__/);
      await dying.change(REQUEST(request), { state: "pending" });
      const orphan = await dying.create(
        "/nodepool/nodes/",
        {
          state: "init",
          state_time: Date.now() / 1000,
          provider: "quick",
          pool: "main",
          type: ["small"],
          allocated_to: request,
          launcher: "python",
        },
        false,
        true,
      );
      registered = [];
      await dying.kill();
      const done = await python.requestIs(request, "fulfilled");
      expect(done.nodes).not.toContain(orphan.slice(-10));
      await python.gone(orphan);
      await finish(python, request);
    });

    test("5, 6: a node that another client has locked is not deleted; once free, it is", async () => {
      const request = await python.request(["large"]);
      const [node] = (await python.requestIs(request, "fulfilled")).nodes as string[];
      await python.lock(`${NODE(node)}/lock`);
      await python.delete(REQUEST(request));
      const stranger = await python.create(`${NODE(node)}/lock/node-x__lock__`, "", true, true);
      await python.change(NODE(node), { state: "used" });
      await quiet();
      const line = await python.children(`${NODE(node)}/lock`);
      expect(line).toHaveLength(2);
      await python.unlock(`${NODE(node)}/lock`);
      await quiet();
      // The foreign contender is the head now, as kazoo sees it, so it holds the lock.
      expect(await python.children(`${NODE(node)}/lock`)).toEqual([
        stranger.slice(stranger.lastIndexOf("/") + 1),
      ]);
      expect(await python.record(NODE(node))).toMatchObject({ state: "used" });
      await python.delete(stranger);
      await python.gone(NODE(node));
    });

    test("7: a blocking attempt on our lock times out and leaves nothing", async () => {
      const request = await python.request(["slow"]);
      await python.requestIs(request, "pending");
      expect(await python.lock(LOCK(request), true, 0.5)).toBe("timeout");
      expect(await python.children(LOCK(request))).toHaveLength(1);
      await finish(python, request);
    });
  },
);

function component(
  id: string,
  provider: string,
  labels: readonly string[],
  priority: number,
  paused: boolean,
) {
  return {
    hostname: "python",
    id,
    kind: "pool",
    model_api: 0,
    name: "main",
    paused,
    priority,
    provider_name: provider,
    state: "running",
    supported_labels: labels,
    version: "11.0.0",
  };
}

/** Waits for the nodes and returns them unused. */
async function finish(client: Agent, request: string): Promise<Record<string, unknown>> {
  const done = await client.requestIs(request, "fulfilled");
  await client.delete(REQUEST(request));
  return done;
}
