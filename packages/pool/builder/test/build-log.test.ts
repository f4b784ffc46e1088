import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HttpApi, type Sources } from "@nodeyard/api";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { memoryLog } from "@nodeyard/telemetry";
import type { EmbeddedTree } from "@nodeyard/tree";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ask } from "../../../faces/api/test/rig.ts";
import type { Builder } from "../src/index.ts";
import { type Host, makeHost, openTree, startBuilder, until } from "./rig.ts";

let host: Host;
let tree: EmbeddedTree;
const ends: (() => Promise<void>)[] = [];

beforeEach(async () => {
  host = makeHost();
  tree = await openTree(host);
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  await tree.close();
  host.remove();
});

/** The API on a Unix socket; without a builder of its own it has to ask. */
async function serve(builder: Builder, name: string, own?: Builder): Promise<string> {
  const session = await tree.connect();
  const handles = { tree: session, clock: systemClock, random: systemRandom };
  const nothing = async () => [];
  const sources: Sources = {
    known: () => ({ view: builder.view, handles }),
    readiness: () => ({ ready: true, why: "" }),
    stuck: () => undefined,
    work: () => undefined,
    audit: () => undefined,
    providers: () => [],
    history: () => [],
    planConfig: async () => undefined,
    sliverMachines: nothing,
    buildLog: async (range, waitMs) => own?.buildLog(range, waitMs),
    checkConfig: nothing,
    metrics: () => Promise.reject(new Error("not asked for")),
  };
  const api = new HttpApi({ clock: systemClock, log: memoryLog(), sources });
  ends.push(() => api.close());
  return api.listen({ socket: join(host.folder, name) });
}

test("a log is read in parts, from its end, and while it grows, also where another process builds", async () => {
  const [go, end] = [join(host.folder, "go"), join(host.folder, "end")];
  const wait = (file: string) => `while [ ! -e ${file} ]; do sleep 0.02; done`;
  const make = 'for format in $NODEYARD_IMAGE_FORMATS; do echo x > "$DIB_IMAGE_FILENAME.$format"; done';
  const script = `printf 'one äöü\\n'\n${wait(go)}\necho two\n${wait(end)}\n${make}`;
  const command = host.script("make", script);
  const config = host.config(`  - {name: small, build-command: [${command}]}`, "{name: small}");
  const { builder } = await startBuilder(await tree.connect(), host, config);
  ends.push(() => builder.close(2_000));
  const [here, elsewhere] = [await serve(builder, "here.sock", builder), await serve(builder, "else.sock")];
  const build = await until(() => [...builder.view.images.builds("small").keys()][0], "a build");
  const part = async (at: string, query = "") => {
    const { status, text } = await ask(at, `/v1/builds/small-${build}/log${query}`);
    return status === 200 ? (JSON.parse(text) as { text: string; next: number; size: number }) : undefined;
  };
  const first = await until(async () => {
    const found = await part(here);
    return found?.text.includes("öü\n") ? found : undefined;
  }, "the first line");
  const size = Buffer.byteLength("one äöü\n");
  expect(first).toMatchObject({ text: "one äöü\n", from: 0, next: size, size, ended: false });
  expect(await part(elsewhere), "asked through the tree").toEqual(first);
  // Byte 5 is in the midst of a letter.
  expect(await part(here, "?from=0&limit=5")).toMatchObject({ text: "one ", next: 4, size });
  expect(await part(here, "?limit=4")).toMatchObject({ text: "ü\n", next: size });
  expect(await part(here, `?from=${size + 100}`)).toMatchObject({ text: "", next: size });

  const more = part(here, `?from=${size}&wait_seconds=25`);
  writeFileSync(go, "");
  expect(await more).toMatchObject({ text: "two\n", from: size, next: size + 4 });

  writeFileSync(end, "");
  const last = await until(async () => {
    const found = await part(here, `?from=${size}&wait_seconds=25`);
    return found !== undefined && "ended" in found && found.ended === true ? found : undefined;
  }, "the build ends");
  expect(last.text).toMatch(/^two\n.*Exit code: 0\n/s);
  expect((await ask(here, "/v1/builds/small-0123/log")).status).toBe(404);
  rmSync(host.logs, { recursive: true });
  const gone = await ask(here, `/v1/builds/small-${build}/log`);
  expect([gone.status, gone.text]).toEqual([404, expect.stringContaining("build-log-dir")]);
});
