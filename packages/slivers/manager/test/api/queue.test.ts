import { expect, test } from "vitest";
import { encodeState } from "../../src/store/store.ts";
import { ApiRig, CONTROL, sliver, spec } from "./rig.ts";

const NAMES = Array.from({ length: 20 }, (_, at) => `w${at}`);
const loans = (count: number) =>
  Array.from({ length: count }, () => ({ to: "w1", resource: "cpuShare", amount: 0 }));

async function machine(): Promise<ApiRig> {
  const rig = new ApiRig();
  await rig.start();
  await rig.json(CONTROL, "Deliver", [rig.document(NAMES.map((name) => spec(name)))]);
  return rig;
}

test("slivers that pipeline changes while the disk is slow keep neither the launcher nor each other out", async () => {
  const rig = await machine();
  const { create } = rig.files;
  let open: () => void = () => undefined;
  const slow = new Promise<void>((resolve) => {
    open = resolve;
  });
  rig.files.create = async (name) => {
    await slow;
    return create.call(rig.files, name);
  };
  const answer = (call: Promise<unknown>) =>
    call.then(
      () => "done",
      ({ message }) => message,
    );
  // Of each the first is being written or waits; what it sends after that is refused at once.
  const calls = NAMES.flatMap((name) =>
    Array.from({ length: 30 }, () => answer(rig.json(sliver(name, 1), "SetLoans", [name, loans(1)]))),
  );
  const delivery = answer(rig.json(CONTROL, "Deliver", [rig.document(NAMES.map((name) => spec(name)))]));
  await rig.settle();
  const before = rig.files.calls;
  open();
  expect(await delivery).toBe("done");
  const answers = await Promise.all(calls);
  expect(answers.filter((one) => one === "done").length).toBeGreaterThanOrEqual(NAMES.length);
  expect(answers.find((one) => one !== "done")).toMatch(/a change of w\d+ waits already; try again/);
  // All together a few writes of seven calls each, not one for each change.
  expect((rig.files.calls - before) / 7).toBeLessThan(5);
});

test("a sliver has 32 loans at most, so that the state stays small; documents may say more", async () => {
  const rig = await machine();
  await expect(rig.json(sliver("w0", 1), "SetLoans", ["w0", loans(33)])).rejects.toMatchObject({ code: 102 });
  for (const name of NAMES) await rig.json(sliver(name, 1), "SetLoans", [name, loans(32)]);
  expect(encodeState(rig.state).length / NAMES.length).toBeLessThan(5_000);
  expect(await rig.json(CONTROL, "SetLoans", ["w0", loans(33)])).toMatchObject({ refused: [] });
});
