import { samePlace } from "@nodeyard/driver";
import type { TestKit, With } from "./rig.ts";

/** Tests of `place`, for drivers whose machines can be somewhere else than a provider looks. */
export function placeTests({ test, expect }: TestKit, run: With): void {
  test(
    "a provider names its place, the same at each opening, and another one names another",
    run(async (bench) => {
      const { rig, installation } = bench;
      const provider = await bench.open();
      if (rig.openElsewhere === undefined) return;
      const { machine } = await bench.create(provider, "0000000042");
      await rig.settle();
      // By now a cloud that names its account with its machines only has named it.
      const again = await bench.open();
      const here = again.place?.() ?? {};
      expect(Object.keys(here).length).toBeGreaterThan(0);
      expect(samePlace(here, provider.place?.() ?? {})).toBe(true);
      const other = await rig.drive(rig.openElsewhere(installation));
      // If the two looked the same, what the other one does not list would be taken for gone.
      expect(samePlace(here, other.place?.() ?? {})).toBe(false);
      expect(await bench.call((signal) => other.find(bench.tag("0000000042"), signal))).toBe(undefined);
      await bench.remove(again, "0000000042", machine.externalId);
    }),
  );
}
