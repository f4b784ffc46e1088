import { announceMember } from "@nodeyard/coordination";
import { expect, test } from "vitest";
import { config, Lab, slicer } from "./lab.ts";

test("a provider that is suspended while its replacement waits comes back as it is configured then", async () => {
  const lab = new Lab();
  const { launcher, log } = await lab.start("a", config({ "max-parallel-jobs": 1 }));
  await lab.get();
  const path = await lab.pythonPool("slicer", ["slice"]);
  await lab.run(500);
  // Launchers of another kind are seen at once by what is opened, and only a moment later by what is served.
  await lab.settle(launcher.reconfigure(config({ "max-parallel-jobs": 3 })));
  expect(lab.pools()).toHaveLength(2);
  expect(log.lines.some(({ text }) => text.includes("keeps the former one"))).toBe(true);
  await lab.until("our pool has left", () => lab.pools().length === 1, 10_000);
  await lab.run(60_000);
  expect(lab.pools()).toHaveLength(1);
  await lab.settle(lab.other.delete(path));
  await lab.until("our pool is back", () => lab.pools().length === 1, 90_000);
  const [first, second] = [await lab.get(), await lab.get()];
  expect(lab.place(first).backing).toBe(lab.place(second).backing);
  await lab.run(120_000);
  expect(lab.pools()).toHaveLength(1);
  expect(lab.children("/nodeyard/elections/metastatic%3Aslicer")).toHaveLength(1);
  lab.check();
});

test("a provider that was suspended can be asked for its facts again, also when it was being asked then", async () => {
  const lab = new Lab();
  const { tree, serving, view, registration } = lab.parts(config({}, {}, []));
  await lab.folder("/nodeyard");
  await lab.settle(announceMember(tree, `a-${tree.session().id.toString(16)}`, "0"));
  await lab.settle(registration.prepare());
  await lab.settle(view.start());
  await lab.settle(serving.apply([slicer()]));
  const readAt = () => serving.locals().providers.get("slicer")?.readAt;
  const path = await lab.pythonPool("slicer", ["slice"]);
  await lab.run(2_000);
  serving.askQuota("slicer");
  await lab.until("it is suspended", () => readAt() === undefined, 10_000);
  await lab.settle(lab.other.delete(path));
  const before = await lab.until("it is served again", readAt, 90_000);
  await lab.run(3_000);
  expect(readAt()).toBe(before);
  serving.askQuota("slicer");
  await lab.run(3_000);
  expect(readAt()).toBeGreaterThan(before);
  await lab.settle(serving.close());
});
