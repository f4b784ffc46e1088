import { expect, test } from "vitest";
import { POLICIES } from "../../src/core/profiles.ts";
import { incoming } from "../core/arbitrary.ts";
import { Rig } from "./rig.ts";

const BOARDS = ["/dev/board0 /dev/serial0", "/dev/board1"];

function rigWith(board: readonly string[]): Rig {
  const machine = { policy: POLICIES.r0, cpu: 4000, link: 1_000_000_000, siblings: [], highestIndex: 8 };
  const devices = { board, kvm: ["/dev/kvm", "/dev/kvm"] };
  const capacity = { "device.board": board.length, "device.kvm": 2 };
  return new Rig({ machine: { ...machine, devices }, capacity });
}

const given = (rig: Rig) =>
  Object.fromEntries([...rig.machine.made.values()].map(({ config }) => [config.name, config.devices]));
const wanting = (number: number, all: Readonly<Record<string, readonly string[]>>) =>
  Object.entries(all).map(([name, devices]) => incoming(name, number, { devices }));

test("each device is one sliver's; one that is listed twice is two slivers'; more are refused, as classes that are not there", async () => {
  const rig = rigWith(BOARDS);
  await rig.start();
  await rig.deliver(
    1,
    wanting(1, {
      ...{ ada: ["board", "kvm"], bob: ["kvm", "board"], eve: ["board"], mia: ["kvm"], zoe: ["gpu"] },
      ...{ tom: ["__proto__"] },
    }),
  );
  expect(given(rig)).toEqual({ ada: [BOARDS[0], "/dev/kvm"], bob: ["/dev/kvm", BOARDS[1]] });
  expect(rig.manager.state.refused).toEqual([
    { name: "eve", code: "capacity", reason: "wants 1 device.board, and 0 is free" },
    { name: "mia", code: "capacity", reason: "wants 1 device.kvm, and 0 is free" },
    { name: "zoe", code: "capacity", reason: "wants 1 device.gpu, and 0 is free" },
    { name: "tom", code: "capacity", reason: "wants 1 device.__proto__, and 0 is free" },
  ]);
});

test("one sliver may have several, and keeps them over a restart, a lost store and others' ends", async () => {
  const rig = rigWith(BOARDS);
  await rig.start();
  await rig.deliver(1, wanting(1, { ada: ["board"], bob: ["board"] }));
  await rig.deliver(2, wanting(2, { bob: ["board"], cid: ["board"] }));
  await rig.pass(10_000);
  expect(given(rig)).toEqual({ bob: [BOARDS[1]], cid: [BOARDS[0]] });
  await rig.start();
  expect(given(rig)).toEqual({ bob: [BOARDS[1]], cid: [BOARDS[0]] });
  await rig.deliver(3, []);
  await rig.deliver(4, wanting(4, { dan: ["board", "board"] }));
  await rig.pass(10_000);
  expect(given(rig)).toEqual({ dan: BOARDS });
  const other = rigWith(BOARDS);
  for (const [index, made] of rig.machine.made) other.machine.made.set(index, made);
  await other.start();
  await other.deliver(1, wanting(1, { dan: ["board", "board"] }));
  expect(other.manager.state.records.get("dan")?.local.devices).toEqual(BOARDS);
});

test("a device is given on only when nothing of its last sliver is left", async () => {
  const rig = rigWith(BOARDS.slice(0, 1));
  await rig.start();
  await rig.deliver(1, wanting(1, { ada: ["board"] }));
  let end = () => {};
  rig.machine.disturb = (step) =>
    step === "destroy" ? new Promise<void>((resolve) => (end = resolve)) : undefined;
  await rig.deliver(2, wanting(2, { bob: ["board"] }));
  await rig.pass(1_000);
  expect(given(rig)).toEqual({ ada: [BOARDS[0]] });
  expect(rig.manager.state.records.get("bob")?.local.devices).toBeUndefined();
  end();
  await rig.pass(10_000);
  expect(given(rig)).toEqual({ bob: [BOARDS[0]] });
});
