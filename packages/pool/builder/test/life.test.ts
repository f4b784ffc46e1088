import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ImageBuildRecord, paths } from "@nodeyard/model";
import { seededRandom, systemClock } from "@nodeyard/runtime";
import { imageEvents } from "@nodeyard/telemetry";
import { createMemoryTree, type EmbeddedTree } from "@nodeyard/tree";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Builder } from "../src/index.ts";
import { type Host, makeHost, openTree, startBuilder, until } from "./rig.ts";

let host: Host;
let tree: EmbeddedTree;
const builders: Builder[] = [];

beforeEach(async () => {
  host = makeHost();
  tree = await openTree(host);
});

afterEach(async () => {
  for (const builder of builders.splice(0)) await builder.close(2_000);
  await tree.close();
  host.remove();
});

async function start(config: Parameters<typeof startBuilder>[2]) {
  const started = await startBuilder(await tree.connect(), host, config);
  builders.push(started.builder);
  return started;
}

const builds = (builder: Builder, state?: ImageBuildRecord["state"]) =>
  [...builder.view.images.builds("small").values()].filter(
    (one) => state === undefined || one.state === state,
  );
const uploads = (builder: Builder) => [...builder.view.images.uploads("small")];

const MAKE =
  'for format in $NODEYARD_IMAGE_FORMATS; do echo "image of $NODEYARD_BUILD" > "$DIB_IMAGE_FILENAME.$format"; done';

test("an image is built, uploaded with its sums and tag, and recorded as the contract says", async () => {
  const command = host.script("make", `echo phase one\n${MAKE}\ntouch "$TMPDIR/rest"`);
  const { builder, log } = await start(
    host.config(
      `  - {name: small, build-command: [${command}], username: tester, metadata: {a: 1}}`,
      "{name: small}",
    ),
  );
  await until(
    () => uploads(builder)[0]?.record.state === "ready",
    "a ready upload",
    () => log.lines,
  );
  const [build] = builds(builder);
  const [upload] = uploads(builder);
  expect(JSON.parse(build!.source.text)).toMatchObject({
    state: "ready",
    builder: "host.example",
    builder_id: readFileSync(join(host.images, "builder_id.txt"), "utf8"),
    formats: "raw",
    username: "tester",
    python_path: "auto",
  });
  expect(build!.id).toMatch(/^[0-9a-f]{32}$/);
  // The counter of the folder counts the lock, too (docs/contract/tree.md, "Sequence numbers").
  expect(upload!.record.id).toBe("0000000001");
  const [image] = host.uploaded();
  expect(image).toMatchObject({
    id: upload!.record.externalId,
    name: upload!.record.externalName,
    format: "raw",
    text: `image of ${build!.id}\n`,
    tag: { provider: "cloud", image: "small", buildId: build!.id, uploadId: "0000000001" },
    metadata: { a: "1" },
  });
  expect(upload!.record.externalName).toMatch(/^small-\d{10}$/);
  expect(host.files()).toEqual([`small-${build!.id}.build`, `small-${build!.id}.raw`]);
  expect(readFileSync(join(host.logs, `small-${build!.id}.log`), "utf8")).toBe("phase one\nExit code: 0\n");
  expect(await tree.children(`${paths.imageBuilds("small")}/lock`)).toEqual([]);
  expect(await tree.children("/nodepool/components/builder")).toHaveLength(1);
});

test("a request is answered by a build that began after it, and only then goes", async () => {
  const gate = join(host.folder, "gate");
  writeFileSync(gate, "");
  const command = host.script("make", `while ! [ -e "${gate}" ]; do sleep 0.05; done\n${MAKE}`);
  const { builder, log } = await start(
    host.config(`  - {name: small, formats: [raw], build-command: [${command}]}`),
  );
  await until(
    () => builds(builder, "ready").length === 1,
    "the first build",
    () => log.lines,
  );
  const { rmSync } = await import("node:fs");
  rmSync(gate);
  await tree.create(paths.imageRequest("small"));
  await until(
    () => builds(builder, "building").length === 1,
    "the requested build",
    () => log.lines,
  );
  // Whoever asks again while it runs wants another one.
  await tree.set(paths.imageRequest("small"), new Uint8Array());
  writeFileSync(gate, "");
  await until(
    () => builder.view.images.requested("small") === false,
    "the request is cleared",
    () => log.lines,
  );
  await until(
    () => builds(builder, "ready").length === 2,
    "two are kept",
    () => log.lines,
  );
  expect(log.lines.filter(({ text }) => text === "build ready")).toHaveLength(3);
  await until(
    () => log.lines.some(({ text }) => text === "deleted a build"),
    "the oldest goes",
    () => log.lines,
  );
  const events = log.lines.flatMap(({ facts }) => ("event" in facts ? [facts] : []));
  for (const { event, ...fields } of events as { readonly event: keyof typeof imageEvents }[]) {
    const known: readonly string[] = imageEvents[event].facts;
    expect(known, event).toEqual(expect.arrayContaining(Object.keys(fields)));
  }
  const [first] = log.lines
    .filter(({ text }) => text === "build ready")
    .map(({ facts }) => facts as { build: string });
  const life = events.filter((fields) => "build" in fields && fields.build === first?.build);
  expect(life.map(({ event }) => event)).toEqual(["build.started", "build.ready", "build.deleted"]);
});

test("a failed build leaves the request; a new request does not wait for the back-off", async () => {
  const command = host.script("make", "exit 1");
  await tree.create("/nodepool");
  for (const path of ["/nodepool/images", paths.image("small"), paths.imageRequest("small")])
    await tree.create(path);
  const { builder, log } = await start(
    host.config(`  - {name: small, formats: [raw], build-command: [${command}]}`),
  );
  await until(
    () => builds(builder, "failed").length === 1,
    "a failure",
    () => log.lines,
  );
  expect(builder.view.images.requested("small")).toBe(true);
  await tree.set(paths.imageRequest("small"), new Uint8Array());
  await until(
    () => builds(builder, "failed").length === 2,
    "another try",
    () => log.lines,
  );
});

test.each([
  ["a command that fails", "echo broken thing >&2; exit 3", "exit code 3; its log is", "Exit code: 3"],
  ["a command that leaves no image", "true", "the build command succeeded without", "Exit code: 0"],
  [
    "a command that leaves an empty one",
    ': > "$DIB_IMAGE_FILENAME.raw"',
    "the build command succeeded without",
    "Exit code: 0",
  ],
  ["a command that is killed", "kill -9 $$", "exit code 137", "Exit code: "],
])("%s: the build is failed, its files go, and the next waits", async (_, text, why, logged) => {
  const command = host.script("make", text);
  const { builder, log } = await start(
    host.config(`  - {name: small, formats: [raw], build-command: [${command}]}`),
  );
  const [failed] = await until(
    () => builds(builder, "failed").length > 0 && builds(builder),
    "a failure",
    () => log.lines,
  );
  expect(log.lines.find((line) => line.text === "build failed")?.facts).toMatchObject({
    why: expect.stringContaining(why),
  });
  expect(readFileSync(join(host.logs, `small-${failed!.id}.log`), "utf8")).toContain(logged);
  await until(
    () => host.files().length === 0,
    "no files",
    () => host.files(),
  );
  expect(builds(builder)).toHaveLength(1);
});

test("a build that takes too long ends with everything it started", async () => {
  const command = host.script("make", "setsid sleep 600 &\nsleep 600");
  const { builder, log } = await start(
    host.config(`  - {name: small, formats: [raw], build-timeout: 1, build-command: [${command}]}`),
  );
  const [failed] = await until(
    () => builds(builder, "failed").length > 0 && builds(builder),
    "a failure",
    () => log.lines,
  );
  expect(log.lines.find((line) => line.text === "build failed")?.facts).toMatchObject({
    why: "it took longer than 1 s",
  });
  const { marked } = await import("../src/edge/leftovers.ts");
  expect(marked(failed!.id)).toEqual([]);
});

test("paused is paused: a request waits for the flag to go", async () => {
  const command = host.script("make", MAKE);
  await tree.create("/nodepool");
  for (const path of [
    "/nodepool/images",
    paths.image("small"),
    paths.imagePause("small"),
    paths.imageRequest("small"),
  ])
    await tree.create(path);
  const { builder, log } = await start(
    host.config(`  - {name: small, formats: [raw], build-command: [${command}]}`),
  );
  expect(builds(builder)).toEqual([]);
  await tree.delete(paths.imagePause("small"));
  await until(
    () => builds(builder, "ready").length === 1,
    "a build",
    () => log.lines,
  );
  await until(
    () => !builder.view.images.requested("small"),
    "the request is cleared",
    () => log.lines,
  );
});

test("rotation: the third build takes the first away, record, upload, cloud image and files", async () => {
  const command = host.script("make", MAKE);
  const { builder, log } = await start(
    host.config(`  - {name: small, build-command: [${command}]}`, "{name: small}"),
  );
  const seen: string[] = [];
  for (const count of [1, 2, 3]) {
    await until(
      () =>
        uploads(builder).filter(({ record, build }) => record.state === "ready" && !seen.includes(build))
          .length === 1,
      `upload ${count}`,
      () => log.lines,
    );
    seen.push(
      ...uploads(builder)
        .map(({ build }) => build)
        .filter((id) => !seen.includes(id)),
    );
    if (count < 3) await tree.create(paths.imageRequest("small"));
  }
  await until(
    () => builds(builder).length === 2 && host.files().length === 4,
    "two are left",
    () => log.lines,
  );
  expect(builds(builder).map(({ id }) => id)).not.toContain(seen[0]);
  expect(host.uploaded()).toHaveLength(2);
  expect(host.files().join()).not.toContain(seen[0]);
});

test("files that no intent of this installation proves to be ours stay, whatever they are called", async () => {
  const strange = "0123456789abcdef0123456789abcdef";
  writeFileSync(join(host.images, "notes-2024.txt"), "mine");
  writeFileSync(join(host.images, `small-${strange}.raw`), "of another tree");
  const intent = {
    v: 1,
    installation: "another",
    image: "small",
    build: strange,
    work: `${host.images}/.work/x`,
  };
  writeFileSync(join(host.images, `small-${strange}.build`), JSON.stringify(intent));
  const command = host.script("make", MAKE);
  const { builder, log } = await start(
    host.config(`  - {name: small, formats: [raw], build-command: [${command}]}`),
  );
  await until(
    () => builds(builder, "ready").length === 1,
    "a build",
    () => log.lines,
  );
  await builder.close();
  expect(host.files()).toEqual(
    expect.arrayContaining(["notes-2024.txt", `small-${strange}.build`, `small-${strange}.raw`]),
  );
});

test("a post-upload hook that fails fails the upload, and its cloud image goes", async () => {
  const command = host.script("make", MAKE);
  const hook = host.script("hook", 'echo "$@" > "$(dirname "$0")/args"; exit 3');
  const config = host.config(`  - {name: small, build-command: [${command}]}`, "{name: small}");
  const cloud = config.builder.uploads.get("cloud")!;
  const { builder, log } = await start({
    ...config,
    builder: { ...config.builder, uploads: new Map([["cloud", { ...cloud, postUploadHook: hook }]]) },
  });
  await until(
    () => uploads(builder)[0]?.record.state === "failed",
    "a failed upload",
    () => log.lines,
  );
  const [build] = builds(builder);
  expect(readFileSync(join(host.folder, "args"), "utf8")).toMatch(
    new RegExp(`^cloud \\S+ ${host.images}/small-${build!.id}.raw\n$`),
  );
  expect(host.uploaded()).toEqual([]);
  expect(uploads(builder)).toHaveLength(1);
});

/** Simulated, seed 769: the record was ready, and its files had been deleted. */
test("a build keeps its files when the answer to its last write is lost with the session", async () => {
  let lost = false;
  const cluster = createMemoryTree({
    clock: systemClock,
    random: seededRandom(1),
    reconnectMs: [500, 500],
    faults({ ops }) {
      const isLast = ops.some(
        (op) => op.op === "set" && /"state":\s*"ready"/.test(Buffer.from(op.data).toString()),
      );
      if (lost || !isLast) return undefined;
      lost = true;
      // Long before it is connected again, and after the write.
      systemClock.setTimer(10, () => client.expire());
      return "lose-reply";
    },
  });
  const client = cluster.connect({ name: "builder" });
  const command = host.script("make", MAKE);
  const config = host.config(
    `  - {name: small, build-command: [${command}], username: tester}`,
    "{name: small}",
  );
  const { builder, log } = await startBuilder(client, host, config);
  builders.push(builder);
  const givenUp = () => log.lines.some(({ text }) => text === "the build was given up");
  await until(
    () => givenUp() && uploads(builder)[0]?.record.state === "ready",
    "a build that was given up, and is uploaded",
    () => log.lines,
  );
  const [build, ...others] = builds(builder);
  expect(others).toEqual([]);
  expect(host.files()).toContain(`small-${build!.id}.raw`);
});
