import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { askMembers } from "@nodeyard/asking";
import { imageWork } from "@nodeyard/operations";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { makeHost, openTree, startBuilder, until } from "./rig.ts";

test("a builder answers a question about its image with its progress, and all other questions at once", async () => {
  const host = makeHost();
  const gate = join(host.folder, "gate");
  const command = host.script(
    "make",
    `echo unpacking things; head -c 100000 /dev/zero > "$DIB_IMAGE_FILENAME.raw"; while ! [ -e "${gate}" ]; do sleep 0.05; done`,
  );
  const tree = await openTree(host);
  const config = host.config(`  - {name: small, formats: [raw], build-command: [${command}]}`);
  const { builder, log } = await startBuilder(tree, host, config);
  const handles = { tree, clock: systemClock, random: systemRandom };
  try {
    const [work] = await until(
      async () => {
        const found = await imageWork(handles, "small");
        return found[0]?.phase === "unpacking things" && found;
      },
      "what the build is at",
      () => log.lines,
    );
    expect(work).toMatchObject({ kind: "build", image: "small", provider: null, total: null, etaMs: null });
    expect(work!.bytes).toBeGreaterThanOrEqual(100_000);
    expect(await imageWork(handles, "another")).toEqual([]);
    // A launcher's question: who asks waits for every member.
    const { answers, silent } = await askMembers(handles, { node: "0000000001" }, 60_000);
    expect([answers.length, silent]).toEqual([1, []]);
    writeFileSync(gate, "");
    await until(
      async () => (await imageWork(handles, "small")).length === 0,
      "the end",
      () => log.lines,
    );
  } finally {
    await builder.close();
    await tree.close();
    host.remove();
  }
});
