import { until } from "../chaos/patience.ts";
import type { Victim } from "../chaos/victim.ts";
import type { ImageLife, Trial } from "./e2e-site.ts";
import { ended, firstBuild, given, isOf, SETTLE_MS, type Step, uploaded } from "./parts.ts";

/** Clients at once: half of their first launches boot the build that is on trial. */
const CLIENTS = 4;
/** Rounds at most; far more than a trial needs. */
const ROUNDS = 6;

/**
 * A build that does not boot and a good one after it, each tried on half of the launches. Throws at the first client that is not
 * served, and at the first failed check.
 */
export async function liveThroughTrials(site: ImageLife, step: Step): Promise<void> {
  const up = await step("nodeyard up: launcher and builder in one process", () => site.up());
  const first = await step("the first build is uploaded: there is nothing to try it against", async () => {
    const build = await firstBuild(site, up);
    await uploaded(site, up, build);
    if ((await site.trial()) !== null) throw new Error("it is on trial all the same");
    return build;
  });
  await step("a client gets it, and logs in", () => served(site, [first]));

  site.breakBuilds(true);
  const bad = await step("a build that does not boot is built and uploaded like any other", () =>
    built(site, up),
  );
  await step(
    `${CLIENTS} clients at once, until it is rolled back: each gets a machine of the proven build`,
    () => tried(site, [first], { build: bad, verdict: "rolled-back" }),
  );
  await step("why is told by image-status and explain", () => shown(site, bad));
  await step("the next client's machine comes by its first launch, of the proven build", async () => {
    const login = await site.granted();
    await isOf(login, first);
    const again = (await site.steps(login.node)).filter((step) => !step.startsWith("1 "));
    if (again.length > 0) throw new Error(`it was launched again: ${again.join(", ")}`);
    await given(site, login);
  });

  site.breakBuilds(false);
  const good = await step("a good build comes", () => built(site, up));
  await step("it is tried, and takes over", () =>
    tried(site, [first, good], { build: good, verdict: "promoted" }),
  );
  await step("the next client gets it", () => served(site, [good]));
  await ended(site, up, step);
}

async function built(site: ImageLife, up: Victim): Promise<string> {
  const { build } = await site.json<{ readonly build: string }>("image-build", "image", "--wait");
  await uploaded(site, up, build);
  if ((await site.trial())?.candidate !== build) throw new Error(`build ${build} is not on trial`);
  return build;
}

/** A client that gets a machine of one of these builds, logs in and returns it. */
async function served(site: ImageLife, builds: readonly string[]): Promise<void> {
  const login = await site.granted();
  const said = (await login.run("cat /etc/nodeyard-build")).trim();
  if (!builds.includes(said)) throw new Error(`the machine is of build ${said}, not of ${builds.join(", ")}`);
  await given(site, login);
}

/** Clients are served in rounds until the trial has its end. */
async function tried(
  site: ImageLife,
  builds: readonly string[],
  end: { readonly build: string; readonly verdict: string },
): Promise<void> {
  let last: Trial["last"] = null;
  for (let round = 1; round <= ROUNDS; round++) {
    await Promise.all(Array.from({ length: CLIENTS }, () => served(site, builds)));
    const trial = await site.trial();
    last = trial?.last ?? null;
    if (trial?.candidate === null) break;
  }
  if (last?.build !== end.build || last.verdict !== end.verdict)
    throw new Error(`the trial of ${end.build} ended as ${JSON.stringify(last)}, not ${end.verdict}`);
}

async function shown(site: ImageLife, bad: string): Promise<void> {
  await until(
    async () => (await site.trial())?.rejected.includes(bad) === true,
    SETTLE_MS,
    async () => JSON.stringify(await site.trial()),
  );
  const why = /rolled-back:? \d+ of \d+ launches failed, against \d+ of \d+/;
  const status = await site.run("image-status");
  const story = await site.run("explain", "image", "image");
  for (const [text, pattern] of [
    [status, why],
    [story, why],
    [story, /rolled back: nothing is launched of it/],
  ] as const)
    if (!pattern.test(text)) throw new Error(`${pattern} is not in:\n${text}`);
}
