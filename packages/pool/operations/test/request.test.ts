import { leasePath, paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { before, touches } from "../../launcher/test/rules/before-write.ts";
import { handles, leaseOf } from "../../launcher/test/rules/lease-world.ts";
import { fakeProvider, launcherConfig, World } from "../../launcher/test/rules/world.ts";
import { askForNodes, releaseLease } from "../src/index.ts";

const wanted = { labels: ["small"], owner: "me", forMs: 600_000 };

/** A command line whose calls may go wrong. */
function commandLine(world: World) {
  return handles(world, world.cluster.connect({ name: "cli", sessionTimeoutMs: 10_000 }));
}

describe("a request whose answer is lost", () => {
  test("is an error, and leaves no nodes behind", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()]));
    world.fault = ({ client, ops }) =>
      client === "cli" && ops.some(({ path }) => path === `${paths.requests}/100-`)
        ? "lose-reply"
        : undefined;
    await expect(world.settle(askForNodes(commandLine(world), wanted))).rejects.toThrow();
    const isLeft = () => [paths.requests, "/nodeyard/leases"].some((path) => world.children(path).length > 0);
    await world.until("lease and request are gone", () => !isLeft(), 10_000);
  });
});

describe("a set whose answer is lost", () => {
  test("is an error, and gathers no nodes", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()]));
    world.fault = ({ client, ops }) =>
      client === "cli" && ops.some(({ op, path }) => op === "create" && /leases\/./.test(path))
        ? "lose-reply"
        : undefined;
    await expect(world.settle(askForNodes(commandLine(world), { ...wanted, same: [] }))).rejects.toThrow();
    const isLeft = () => [paths.requests, "/nodeyard/leases"].some((path) => world.children(path).length > 0);
    await world.until("lease and request are gone", () => !isLeft(), 10_000);
  });
});

describe("a release", () => {
  test("is written again over what a launcher wrote meanwhile", async () => {
    const world = new World();
    const cli = commandLine(world);
    const { id } = await world.settle(askForNodes(cli, wanted));
    const granted = { ...leaseOf(world, id), state: "granted", nodes: ["0000000007"] };
    const done = before(world, touches(leasePath(id)), () => {
      void world.other.set(leasePath(id), Buffer.from(JSON.stringify(granted)));
    });
    expect(await world.settle(releaseLease(cli, id))).toBe("released");
    expect(done()).toBe(true);
    expect(leaseOf(world, id)).toEqual({ ...granted, state: "released" });
  });

  test("of a lease whose time is over meanwhile finds none, which is no error", async () => {
    const world = new World();
    const cli = commandLine(world);
    const { id } = await world.settle(askForNodes(cli, wanted));
    before(world, touches(leasePath(id)), () => void world.other.delete(leasePath(id)));
    expect(await world.settle(releaseLease(cli, id))).toBe("unknown");
  });
});
