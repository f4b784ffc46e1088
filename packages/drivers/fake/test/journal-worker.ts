import { systemClock, systemRandom } from "@nodeyard/runtime";
import { FakeCloud, FileJournal, INSTANT } from "../src/index.ts";

// Makes machines 0 to N-1 in the journal's cloud and prints the id that it was told for each.
const [path, count] = process.argv.slice(2) as [string, string];
const cloud = new FakeCloud({
  clock: systemClock,
  random: systemRandom,
  knobs: { ...INSTANT, quota: {} },
  journal: new FileJournal(path),
});
const { signal } = new AbortController();
for (let node = 0; node < Number(count); node++) {
  const tag = { installation: "i", provider: "p", pool: "main", nodeId: String(node) };
  const resources = { instances: 1 };
  const server = await cloud.create(
    { name: `np${node}`, tag, az: null, resources, networks: [], imageProperties: {} },
    signal,
  );
  process.stdout.write(`${node} ${server.id}\n`);
  // Lets the processes take turns.
  await new Promise((resolve) => setImmediate(resolve));
}
