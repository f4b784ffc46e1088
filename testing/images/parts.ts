import { until } from "../chaos/patience.ts";
import type { Victim } from "../chaos/victim.ts";
import type { ImageLife, Login } from "./e2e-site.ts";

/** Deadline for something that only has to be noticed. */
export const SETTLE_MS = 90_000;

/** Runs a step, and prints its result and duration. */
export type Step = <T>(what: string, work: () => Promise<T>) => Promise<T>;

/** The first build, which begins by itself. */
export async function firstBuild(site: ImageLife, up: Victim): Promise<string> {
  await Promise.race([up.printed('"build ready"'), up.printed('"build failed"')]);
  const [build] = await site.builds("ready");
  if (build === undefined) throw new Error(up.errors.slice(-5_000));
  return build;
}

export function uploaded(site: ImageLife, up: Victim, build: string): Promise<void> {
  return until(
    async () => (await site.uploaded()).includes(build),
    SETTLE_MS,
    () => up.errors.slice(-5_000),
  );
}

export async function isOf(login: Login, build: string): Promise<void> {
  const said = (await login.run("cat /etc/nodeyard-build")).trim();
  if (said !== build) throw new Error(`the machine says that it is of build ${said}, not ${build}`);
}

export async function given(site: ImageLife, { lease }: Login): Promise<void> {
  await site.run("release", lease);
}

/** Ends all nodes, then Nodeyard itself, and checks that nothing is left of either. */
export async function ended(site: ImageLife, up: Victim, step: Step): Promise<void> {
  await step("all nodes are gone", () =>
    until(
      async () => (await site.json<unknown[]>("list")).length === 0,
      SETTLE_MS,
      () => up.errors.slice(-5_000),
    ),
  );
  await step("Nodeyard ends, and nothing is left: no process, mount, loop device, folder", async () => {
    await up.signal("SIGTERM");
    if (up.exitCode !== 0) throw new Error(`it ended with ${up.exitCode}:\n${up.errors.slice(-5_000)}`);
    const left = site.leftovers();
    if (left.length > 0) throw new Error(left.join("\n"));
  });
}
