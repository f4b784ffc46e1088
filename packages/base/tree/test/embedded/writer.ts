import { systemClock, systemRandom } from "@nodeyard/runtime";
import { openEmbeddedTree, socketPath } from "../../src/embedded/index.ts";

/**
 * A process that writes without end and says on stdout what was acknowledged, one line each: `n` for a commit that made
 * `/pairs/n-a` and `/pairs/n-b` and set `/counter` to n. Arguments: folder, first n, bytes per znode, "serve" to serve the tree as well.
 */
const [folder = "", first = "0", size = "100", serve] = process.argv.slice(2);
const tree = await openEmbeddedTree({ folder, clock: systemClock, random: systemRandom });
// What was acknowledged and not yet said when the process dies is simply not looked for.
const say = (line: string) => process.stdout.write(`${line}\n`);
say(`zxid ${(await tree.create("/opened-", undefined, { sequential: true })).stat.czxid}`);
if ((await tree.stat("/pairs")) === undefined) {
  await tree.commit([
    { op: "create", path: "/pairs" },
    { op: "create", path: "/counter" },
  ]);
}
await tree.create("/mine", undefined, { ephemeral: true });
if (serve) {
  // Loaded only here: most runs of this process last milliseconds.
  const { startTreeServer } = await import("../../src/server/index.ts");
  await startTreeServer({ core: tree.core, clock: systemClock, socket: socketPath(folder) });
}
say("ready");
let next = Number(first);
const data = new Uint8Array(Number(size)).fill(120);

async function writer(): Promise<void> {
  for (;;) {
    const n = next++;
    const results = await tree.commit([
      { op: "create", path: `/pairs/${n}-a`, data },
      { op: "set", path: "/counter", data: new TextEncoder().encode(String(n)) },
      { op: "create", path: `/pairs/${n}-b`, data },
    ]);
    say(`${n} ${results[0].stat.czxid}`);
  }
}

try {
  await Promise.all(Array.from({ length: 8 }, writer));
} catch (error) {
  say(`failed ${(error as { code?: string }).code} ${(error as { outcome?: string }).outcome}`);
  const later = await tree.set("/counter", data).then(
    () => "acknowledged",
    (refusal: { code?: string }) => refusal.code,
  );
  say(`later ${later} ${tree.session().state}`);
  await tree.close();
}
