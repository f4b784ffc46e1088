import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodeImageBuild, newImageBuild, paths } from "@nodeyard/model";
import { requestBuild } from "@nodeyard/operations";
import { seededRandom, systemClock } from "@nodeyard/runtime";
import { type CallInfo, createMemoryTree, ensurePath, type Fault, type MemoryTree } from "@nodeyard/tree";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Builder } from "../src/index.ts";
import { type Host, makeHost, startBuilder, until } from "./rig.ts";

/** A tree that tears, delays and loses, as ZooKeeper's watches do, and real builds beneath it. */
let fault: (call: CallInfo) => Fault;
let cluster: ReturnType<typeof createMemoryTree>;
const hosts: Host[] = [];
const builders: Builder[] = [];

beforeEach(() => {
  fault = () => undefined;
  cluster = createMemoryTree({
    clock: systemClock,
    random: seededRandom(1),
    latencyMs: [1, 4],
    faults: (call) => fault(call),
  });
});

afterEach(async () => {
  fault = () => undefined;
  for (const builder of builders.splice(0)) await builder.close(2_000);
  for (const host of hosts.splice(0)) host.remove();
});

async function start(name: string, script: string) {
  const host = makeHost();
  hosts.push(host);
  const command = host.script("make", script);
  const tree: MemoryTree = cluster.connect({ name: name });
  const started = await startBuilder(
    tree,
    host,
    host.config(`  - {name: small, build-command: [${command}]}`, "{name: small}"),
  );
  builders.push(started.builder);
  return { ...started, host, tree };
}

const MAKE = 'echo built > "$DIB_IMAGE_FILENAME.raw"';
const builds = (builder: Builder) => [...builder.view.images.builds("small").values()];
const uploads = (builder: Builder) =>
  [...builder.view.images.uploads("small")].map(({ record }) => record.state);

test("of two builders one builds; a build deleted by one host's janitor loses its files on the other's", async () => {
  const a = await start("a", `sleep 0.3; ${MAKE}`);
  const b = await start("b", `sleep 0.3; ${MAKE}`);
  await until(
    () => uploads(b.builder).includes("ready"),
    "an upload",
    () => [...a.log.lines, ...b.log.lines],
  );
  expect(builds(b.builder)).toHaveLength(1);
  expect([a, b].filter(({ host }) => host.files().length > 0)).toHaveLength(1);
  const owner = a.host.files().length > 0 ? a : b;
  const [build] = builds(b.builder);
  await cluster.connect({ name: "cli" }).create(paths.imageRequest("small"));
  await until(
    () => builds(b.builder).filter(({ state }) => state === "ready").length === 2,
    "a second build",
  );
  const cli = cluster.connect({ name: "cli2" });
  const path = paths.imageBuild("small", build!.id);
  await cli.set(path, Buffer.from(build!.source.text.replace('"ready"', '"deleting"')));
  await until(
    () => builds(b.builder).every(({ id }) => id !== build!.id),
    "its record goes",
    () => a.log.lines,
  );
  await until(
    () => !owner.host.files().join().includes(build!.id),
    "its files go",
    () => owner.log.lines,
  );
});

test("a builder that loses its session ends the build at once, and another one is made", async () => {
  const { builder, host, tree, log } = await start(
    "a",
    `while [ ! -e "$(dirname "$0")/gate" ]; do sleep 0.05; done; ${MAKE}`,
  );
  await until(
    () => builds(builder).some(({ state }) => state === "building"),
    "a build",
    () => log.lines,
  );
  const [lost] = builds(builder);
  tree.expire();
  await until(
    () => builds(builder).some(({ id, state }) => id === lost!.id && state === "failed"),
    "it is failed",
    () => log.lines,
  );
  expect(host.files().join()).not.toContain(lost!.id);
  writeFileSync(join(host.folder, "gate"), "");
  const cli = cluster.connect({ name: "cli" });
  await cli.create(paths.imageRequest("small"));
  await until(
    () => builds(builder).some(({ state }) => state === "ready"),
    "another build",
    () => log.lines,
  );
  expect(existsSync(join(host.images, ".work", `small-${lost!.id}`))).toBe(false);
});

/** A builder that was killed: its record, and the lock of the image that it has until its session ends. `began`: Unix seconds. */
async function leaveBuild(began: number) {
  const dead = cluster.connect({ name: "dead" });
  const left = newImageBuild("1".repeat(32), { builder: "b", builderId: "b", formats: ["raw"] }, began);
  await ensurePath(dead, paths.imageBuildsLock("small"));
  await dead.create(paths.imageBuild("small", left.id), encodeImageBuild(left));
  const contender = `${paths.imageBuildsLock("small")}/${"2".repeat(32)}__lock__`;
  await dead.create(contender, undefined, { ephemeral: true, sequential: true });
  const stateIn = (builder: Builder) => builds(builder).find(({ id }) => id === left.id)?.state;
  return { dead, stateIn };
}

test("a build that a killed builder left is settled before the next one: after it, it would count as a failure since", async () => {
  const { dead, stateIn } = await leaveBuild(1);
  const { builder, log } = await start("a", MAKE);
  expect(stateIn(builder)).toBe("building");
  await dead.close();
  // Reaches the worker at once, and the sweep only later.
  await cluster.connect({ name: "cli" }).create(paths.imageRequest("small"));
  await until(
    () => uploads(builder).includes("ready"),
    "an upload",
    () => log.lines,
  );
  await until(
    () => stateIn(builder) === undefined,
    "the record of the failure goes",
    () => [builds(builder), log.lines],
  );
});

test("a request that is older than the build that a killed builder left waits for the back-off: its build may kill builders", async () => {
  const cli = cluster.connect({ name: "cli" });
  await ensurePath(cli, paths.imageBuilds("small"));
  await cli.create(paths.imageRequest("small"));
  const { dead, stateIn } = await leaveBuild(systemClock.now() / 1000 + 1);
  const { builder, log } = await start("a", MAKE);
  expect(stateIn(builder)).toBe("building");
  await dead.close();
  // A change of the image that reaches the worker at once.
  await cli.create(paths.imagePause("small"));
  await cli.delete(paths.imagePause("small"));
  await until(
    () => stateIn(builder) === "failed",
    "it is settled",
    () => log.lines,
  );
  await until(
    async () => (await cli.children(paths.imageBuildsLock("small"))).length === 0,
    "the lock is free",
  );
  expect(log.lines.filter(({ text }) => text === "build started")).toEqual([]);
});

test.each(["lose-request", "lose-reply"] as const)(
  "every tenth write of images meets %s: all is as it should be in the end",
  async (what) => {
    let writes = 0;
    fault = ({ client, kind, path }) =>
      client === "a" && kind === "write" && path.startsWith("/nodepool/images") && ++writes % 10 === 0
        ? what
        : undefined;
    const { builder, host, log } = await start("a", MAKE);
    const cli = cluster.connect({ name: "cli" });
    for (const count of [1, 2]) {
      // A try that a lost answer ended is repeated when somebody asks.
      await until(
        async () => {
          if (builds(builder).filter(({ state }) => state === "ready").length >= count) return true;
          await requestBuild({ tree: cli, clock: systemClock, random: seededRandom(2) }, "small");
          return false;
        },
        `build ${count}`,
        () => log.lines,
      );
    }
    fault = () => undefined;
    await until(
      () => builds(builder).every(({ state }) => state === "ready"),
      "nothing is half done",
      () => log.lines,
    );
    // Looked up anew each time: a build that was asked for above may be ready only now.
    const listed = () => builds(builder).flatMap(({ id }) => [`small-${id}.build`, `small-${id}.raw`]);
    await until(
      () => host.files().every((name) => listed().includes(name)),
      "no file that is not listed",
      () => [host.files(), listed()],
    );
  },
);
