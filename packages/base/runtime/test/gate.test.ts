import { expect, test } from "vitest";
import { Gate } from "../src/index.ts";

test("so many at once, the rest in order, and a failure gives its turn back", async () => {
  const gate = new Gate(2);
  const begun: number[] = [];
  const ends: PromiseWithResolvers<number>[] = [];
  const all = Array.from({ length: 5 }, (_, number) =>
    gate.run(() => {
      begun.push(number);
      ends[number] = Promise.withResolvers<number>();
      return ends[number].promise;
    }),
  );
  const settled = Promise.allSettled(all);
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  await turn();
  expect(begun).toEqual([0, 1]);
  ends[1]!.reject(new Error("broken"));
  await turn();
  expect(begun).toEqual([0, 1, 2]);
  ends[0]!.resolve(0);
  ends[2]!.resolve(2);
  await turn();
  expect(begun).toEqual([0, 1, 2, 3, 4]);
  ends[3]!.resolve(3);
  ends[4]!.resolve(4);
  expect((await settled).map(({ status }) => status)).toEqual([
    "fulfilled",
    "rejected",
    "fulfilled",
    "fulfilled",
    "fulfilled",
  ]);
  expect(await gate.run(async () => "later")).toBe("later");
});

test("work that goes ahead begins before work that has waited for longer", async () => {
  const gate = new Gate(1);
  const begun: string[] = [];
  const end = Promise.withResolvers<void>();
  const work = (name: string, ahead: boolean) =>
    gate.run(async () => void begun.push(name), undefined, ahead);
  const first = gate.run(() => end.promise);
  const rest = [
    work("waits", false),
    work("ahead", true),
    work("waits, too", false),
    work("ahead, too", true),
  ];
  end.resolve();
  await Promise.all([first, ...rest]);
  expect(begun).toEqual(["ahead", "ahead, too", "waits", "waits, too"]);
});
