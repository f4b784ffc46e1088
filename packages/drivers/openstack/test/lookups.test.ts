import type { LabelConfig } from "@nodeyard/driver";
import { VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import type { OpenstackLabelOwn } from "../src/config.ts";
import { Lookups } from "../src/lookups/lookups.ts";

const { signal } = new AbortController();
const label = { name: "small", own: { minRam: 0, flavorName: "m1" } } as LabelConfig<OpenstackLabelOwn>;
const FLAVOR = { id: "1", name: "m1", ram: 1, vcpus: 1 };

/** A cloud whose lists of flavors are these, one after the other. */
function lookups(...answers: readonly (readonly object[])[]) {
  const left = [...answers];
  const flavors = { list: async () => left.shift() ?? answers.at(-1)! };
  return new Lookups(new VirtualClock(), { flavors } as never);
}

test("a list of flavors that is empty once is read again; one that stays empty is a passing fault, not the label's", async () => {
  expect(await lookups([], [FLAVOR]).flavor(label, signal)).toEqual(FLAVOR);
  await expect(lookups([], []).flavor(label, signal)).rejects.toMatchObject({ kind: "transient" });
  const others = [{ ...FLAVOR, name: "other" }];
  await expect(lookups(others, others).flavor(label, signal)).rejects.toMatchObject({
    kind: "configuration",
  });
});
