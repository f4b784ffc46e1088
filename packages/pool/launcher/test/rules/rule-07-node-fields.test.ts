import { paths } from "@nodeyard/model";
import { expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "./world.ts";

/** Texts that a parser and a writer of JSON would not give back as they were. */
const ODD = [
  '"big": 12345678901234567890',
  '"nan": NaN',
  '"inf": -Infinity',
  '"__proto__": {"polluted": true}',
  '"lone": "\\ud800"',
  '"twice": 1, "twice": 2',
  '"deep": {"big": 12345678901234567890, "twice": 1, "twice": 2, "nan": NaN}',
];

const squeezed = (text: string) => text.replaceAll(/\s/g, "");

function expectKept(text: string | undefined, when: string): void {
  for (const part of ODD) expect(squeezed(text ?? ""), when).toContain(squeezed(part));
}

test("rule 7: unknown fields of a node live through each write of a launcher: claimed, freed, and on its way out", async () => {
  const world = new World();
  await world.folder(paths.nodes);
  const fields = `"state": "ready", "state_time": 1, "provider": "cloud", "pool": "main", "type": ["small"], "allocated_to": null`;
  const made = await world.settle(
    world.other.create(`${paths.nodes}/`, Buffer.from(`{${fields}, ${ODD.join(", ")}}`), {
      sequential: true,
    }),
  );
  await world.start("a", launcherConfig([fakeProvider()]));
  const request = await world.ask(
    `{"state": "requested", "node_types": ["small"], "requestor": "t", "event_id": "e", ${ODD.join(", ")}}`,
  );
  const fulfilled = () => world.text(paths.request(request))?.includes('"fulfilled"');
  await world.until("fulfilled", fulfilled);
  expectKept(world.text(paths.request(request)), "request");
  expect(world.text(made.path)).toContain(request);
  expectKept(world.text(made.path), "claimed");
  await world.settle(world.other.delete(paths.request(request)));
  await world.until("freed", () => !world.text(made.path)?.includes(request));
  expectKept(world.text(made.path), "freed");
  const used = world.text(made.path)!.replace(/"state":\s*"ready"/, '"state": "used"');
  await world.settle(world.other.set(made.path, Buffer.from(used)));
  await world.until("gone", () => world.text(made.path) === undefined);
  const texts = world.cluster.log
    .filter(({ client }) => client === "a")
    .flatMap(({ ops }) => ops)
    .flatMap((op) => (op.op === "set" && op.path === made.path ? [Buffer.from(op.data).toString()] : []));
  expect(texts.length).toBeGreaterThanOrEqual(4);
  for (const text of texts) expectKept(text, text);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});
