import { expect, test } from "vitest";
import {
  cloudProvider,
  DriverError,
  listedResources,
  type Metadata,
  machineMetadata,
  openProvider,
} from "../src/index.ts";

const tag = { installation: "i", provider: "cloud", pool: "main", nodeId: "0000000001" };
interface Machine {
  readonly id: string;
  readonly metadata?: Metadata;
}
const cloud = {
  idOf: ({ id }: Machine) => id,
  metadataOf: ({ metadata = {} }: Machine) => metadata,
  amounts: () => ({ instances: 1 }),
};
const machine = { id: "m", metadata: machineMetadata(tag) };
const nic = { type: "interface", id: "n", on: ["m"], tag: null, resources: { interfaces: 1 } };
const address = { type: "address", id: "a", on: ["n"], tag, resources: { addresses: 1 } };

test("what is attached to a machine, also by another part, counts with it and is no resource of its own", () => {
  const disk = { type: "disk", id: "d", tag, resources: { disks: 2 } };
  const all = listedResources<Machine>([machine, { id: "other" }], [nic, address, disk], {
    ...cloud,
    partsOf: ({ id }) => (id === "m" ? ["d"] : []),
    isEnding: ({ id }) => id === "other",
  });
  expect(all).toEqual([
    { type: "instance", id: "m", tag, resources: { instances: 1, interfaces: 1, addresses: 1, disks: 2 } },
    { type: "instance", id: "other", tag: null, ended: true, resources: { instances: 1 } },
  ]);
});

test("what is attached to nothing that is listed stands alone, with what says whose it is", () => {
  const circle = { type: "disk", id: "c", on: ["c", null, "gone"], tag: null };
  const upload = { ...tag, image: "noble", buildId: "b", uploadId: "0000000001" };
  const image = { type: "image", id: "i", tag: null, imageTag: upload };
  expect(listedResources<Machine>([], [nic, address, circle, image], cloud)).toEqual([
    { type: "interface", id: "n", tag: null, resources: { interfaces: 1 } },
    { type: "address", id: "a", tag, resources: { addresses: 1 } },
    { type: "disk", id: "c", tag: null, resources: {} },
    { type: "image", id: "i", tag: null, imageTag: upload, resources: {} },
  ]);
});

test("a provider whose check fails is closed, and the error is the cloud's", async () => {
  const done: string[] = [];
  const opened = openProvider(
    "cloud",
    (error, place) => new DriverError("access", `${place}: ${(error as Error).message}`),
    (closed) => {
      closed.addEventListener("abort", () => done.push("abort"));
      return {
        check: () => Promise.reject(new Error("no credentials")),
        close: () => void done.push("close"),
      } as never;
    },
  );
  await expect(opened).rejects.toMatchObject({ kind: "access", message: "cloud: no credentials" });
  expect(done).toEqual(["abort", "close"]);
});

test("a machine that has ended is found as well: what is left of it may cost, and is deleted with its node", async () => {
  const machines = { cloud: { idOf: () => "m", hasEnded: () => true }, find: async () => machine };
  const provider = await cloudProvider(
    { name: "cloud" } as never,
    (error) => error as never,
    () => ({ machines, check: async () => {} }) as never,
  );
  expect(await provider.find(tag, new AbortController().signal)).toBe("m");
});

test("a leaked machine is not waited for, so that the others have their turn: its deletion is requested", async () => {
  const done: string[] = [];
  const late = () => Promise.reject(new Error("it takes minutes"));
  const machines = {
    cloud: { idIn: (id: string) => id },
    delete: async () => done.push("delete"),
    gone: late,
  };
  const provider = await cloudProvider(
    { name: "cloud" } as never,
    (error) => error as never,
    () => {
      async function* first() {
        yield { step: "first", deadlineMs: done.push("first") };
      }
      return { machines, first, check: async () => {}, close() {} } as never;
    },
  );
  const { signal } = new AbortController();
  await provider.removeResource({ type: "instance", id: "m", tag, resources: {} }, signal);
  expect(done).toEqual(["first", "delete"]);
});
