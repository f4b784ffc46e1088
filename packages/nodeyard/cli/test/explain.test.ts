import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fakeConfig, type Granted, type Running, Site } from "./nodeyard.ts";

interface Story {
  readonly kind: string;
  readonly state: string;
  readonly about: Readonly<Record<string, unknown>>;
  readonly waits_for: { readonly code: string; readonly facts: object; readonly source: string } | null;
  readonly next: string;
  readonly events: readonly { readonly event: string; readonly meaning: string; readonly facts: object }[];
  readonly journal: { readonly problem: string | null };
}

const KEYS = [
  ...["v", "kind", "id", "state", "since", "about", "waits_for", "next", "estimate"],
  ...["pools", "steps", "events", "journal", "members"],
];

/** What the launcher notes reaches its journal within a quarter of a second. */
async function noted(site: Site, id: string, event: string): Promise<Story> {
  for (;;) {
    const story = await site.json<Story>("explain", id);
    if (story.events.some((past) => past.event === event)) return story;
  }
}

describe("explain, on a Nodeyard of one process", () => {
  let site: Site;
  let up: Running;
  beforeAll(async () => {
    site = new Site(fakeConfig());
    up = await site.up();
  });
  afterAll(() => site.close());

  test("a lease, its request and its nodes, from the first to the last", async () => {
    const granted = await site.json<Granted>("request", "small:2", "--wait");
    const lease = await noted(site, granted.lease, "lease.granted");
    expect(Object.keys(lease)).toEqual(KEYS);
    expect(lease).toMatchObject({ kind: "lease", state: "granted", waits_for: null });
    expect(lease.next).toContain(`nodeyard release ${granted.lease}`);
    const events = lease.events.map(({ event }) => event);
    expect(events).toEqual(["request.accepted", "request.fulfilled", "lease.granted"]);
    const node = await site.json<Story>("explain", granted.nodes[0]!.id);
    expect(node).toMatchObject({
      state: "in-use",
      about: { lease: granted.lease, allocated_to: granted.request },
    });
    expect(await site.json<Story>("explain", granted.request)).toMatchObject({
      state: "gone",
      next: "Nothing. Its nodes were handed over, and the request was deleted.",
    });

    await site.run("release", granted.lease);
    expect(await noted(site, granted.lease, "lease.ended")).toMatchObject({ state: "gone" });
    const gone = await noted(site, granted.nodes[0]!.id, "node.deleted");
    expect(gone).toMatchObject({ state: "gone", next: "Nothing. Its machine and its record are gone." });
  });

  test("a waiting request names its reason with figures; a request behind it names that request", async () => {
    const first = await site.json<Granted>("request", "small:3", "--wait");
    const second = await site.json<Granted>("request", "small:5");
    const third = await site.json<Granted>("request", "large");
    const waiting = await noted(site, second.lease, "request.waits");
    expect(waiting.waits_for).toMatchObject({
      code: "capacity.pool",
      source: "launcher",
      facts: { pool: "fake-cloud/main", resource: "instances", limit: 5, used: 3, need: 5 },
    });
    const behind = await site.json<Story>("explain", third.request);
    expect(behind.waits_for).toMatchObject({ code: "queue.behind", facts: { head: second.request } });
    const { out } = await site.run("explain", second.request);
    expect(out).toMatch(/^request \S+ is requested since \S+ \(\d+ s\)\n {2}labels +small:5\n/);
    expect(out).toMatch(/\nIt waits: The pool's limit is used up \(capacity\.pool\) since /);
    expect(out).toContain("\nNext: It is retried as soon as a node of the pool is deleted or free.\n");
    await site.run("release", first.lease, second.lease, third.lease);
  });

  test("what failed says why, also when it is forgotten", async () => {
    const asked = await site.run("request", "nothing-like-it", "--wait");
    const request = /"nodeyard explain (\d{3}-\d{10})" says why/.exec(asked.err)![1]!;
    const story = await noted(site, request, "request.declined");
    expect(story).toMatchObject({ state: "gone", waits_for: null });
    expect(story.next).toContain("[nothing-like-it] not available");
  });

  test("a label: which pool would serve it, and what prevents the others", async () => {
    const free = await site.json<Story>("explain", "small");
    expect(free).toMatchObject({
      kind: "label",
      state: "served",
      waits_for: null,
      pools: [{ pool: "fake-cloud/main", outlook: "can", code: "pool.can" }],
    });
    const all = await site.json<Granted>("request", "small:5", "--wait");
    const full = await site.run("explain", "label", "small");
    expect(full.out).toMatch(/^label small is waiting\n/);
    expect(full.out).toMatch(
      /It waits: The pool's limit is used up \(capacity\.pool\)\n {2}pool +fake-cloud\/main\n/,
    );
    await site.run("release", all.lease);
    const none = await site.run("explain", "debian-12");
    expect([none.code, none.out]).toEqual([1, ""]);
    expect(none.err).toMatch(/no pool offers debian-12; known: /);
  });

  test("an unknown id, and a word that is no id", async () => {
    const unknown = await site.run("explain", "99");
    expect([unknown.code, unknown.out]).toEqual([1, ""]);
    expect(unknown.err).toMatch(
      /^nodeyard: there is no node 0000000099, and neither the launchers that answered nor \S+journal\.sqlite know it; .*\n$/,
    );
    const odd = await site.run("explain", "../nodes");
    expect([odd.code, odd.out]).toEqual([2, ""]);
    expect(odd.err).toMatch(/^nodeyard: "\.\.\/nodes" is not the id of a request .*\n$/);
  });

  test("without a journal it says so and shows what the tree knows", async () => {
    const waits = await site.json<Granted>("request", "small:4");
    const more = await site.json<Granted>("request", "small:4");
    await up.kill("SIGKILL");
    for (const end of ["", "-wal", "-shm"]) rmSync(join(site.state, `journal.sqlite${end}`), { force: true });
    const file = join(site.state, "journal.sqlite");
    const newer = new DatabaseSync(file);
    newer.exec("PRAGMA user_version = 99");
    newer.close();
    up = await site.up();
    const story = await site.json<Story>("explain", more.request);
    expect(story.events).toEqual([]);
    expect(story.journal.problem).toContain(`${file} was written by a later release (layout 99`);
    // The launcher knows without it why the request waits now.
    expect(story).toMatchObject({ waits_for: { code: "capacity.pool", source: "launcher" } });
    await site.run("release", waits.lease, more.lease);
  });
});
