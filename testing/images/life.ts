import { until } from "../chaos/patience.ts";
import type { ImageLife } from "./e2e-site.ts";
import type { ImageKind } from "./kinds.ts";
import { ended, firstBuild, given, isOf, SETTLE_MS, type Step, uploaded } from "./parts.ts";

/** The whole life of an image, each part with the commands that clients and operators use. Throws at the first failed check. */
export async function liveThrough(site: ImageLife, kind: ImageKind, step: Step): Promise<void> {
  const up = await step("nodeyard up: launcher and builder in one process", () => site.up());
  const first = await step("diskimage-builder makes the image", () => firstBuild(site, up));
  await step("the image is uploaded to the host's store", () => uploaded(site, up, first));
  const held = await step("a client asks for the label: the image boots, and its host key is known", () =>
    site.granted(),
  );
  await step("the client logs in over SSH: the machine is of that build", () => isOf(held, first));
  for (let number = 2; number <= kind.builds; number++)
    await step(`build ${number}, asked for while the machine lives`, async () => {
      const { build } = await site.json<{ readonly build: string }>("image-build", "image", "--wait");
      await uploaded(site, up, build);
    });
  if (kind.builds > 2) {
    await step("the first build is past its time, and stays while its machine lives", async () => {
      if (!(await site.uploaded()).includes(first))
        throw new Error("its upload was taken from under a machine");
      await isOf(held, first);
    });
    const newest = (await site.builds("ready"))[0]!;
    const next = await step("another client gets the newest build", () => site.granted());
    await step("and logs in", () => isOf(next, newest));
    await given(site, next);
  }
  await step("the machine is given back", () => given(site, held));
  if (kind.builds > 2)
    await step("the first build goes: record, upload, file", () =>
      until(
        async () => !(await site.builds("ready")).includes(first) && !(await site.uploaded()).includes(first),
        SETTLE_MS,
        () => up.errors.slice(-5_000),
      ),
    );
  await ended(site, up, step);
}
