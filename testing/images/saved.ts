import type { ImageLife, Login } from "./e2e-site.ts";
import { ended, firstBuild, given, isOf, type Step, uploaded } from "./parts.ts";

/**
 * A built image whose machines resume from a saved state: none of them boots, and each has an identity of its own. Throws at the first
 * failed check.
 */
export async function liveThroughSaved(site: ImageLife, step: Step): Promise<void> {
  const up = await step("nodeyard up: launcher and builder in one process", () => site.up());
  const build = await step("diskimage-builder makes the image, with the element nodeyard-parked", () =>
    firstBuild(site, up),
  );
  await step("the image is uploaded to the host's store", () => uploaded(site, up, build));
  const first = await step("a client asks: the image boots once, is saved, and its machine goes on", () =>
    goneOn(site, build),
  );
  const second = await step("another client's machine goes on from the same state", () =>
    goneOn(site, build),
  );
  await step("they are two: host key, machine id, name, chance", () => differ(first, second));
  for (const login of [first, second]) await given(site, login);
  await ended(site, up, step);
}

async function goneOn(site: ImageLife, build: string): Promise<Login> {
  const login = await site.granted();
  const steps = await site.steps(login.node);
  if (!steps.includes("1 resume") || steps.includes("1 start"))
    throw new Error(`it came by ${steps.join(", ")}`);
  await isOf(login, build);
  return login;
}

async function differ(first: Login, second: Login): Promise<void> {
  const said = async ({ keys, run }: Login) => [
    keys.join(),
    ...(await run("cat /etc/machine-id; cat /etc/hostname; head -c 16 /dev/urandom | od -An -tx1")).split(
      "\n",
    ),
  ];
  const [one, other] = [await said(first), await said(second)];
  for (const [at, what] of ["host key", "machine id", "hostname", "chance"].entries())
    if (!one[at] || one[at] === other[at]) throw new Error(`both have ${what} ${one[at]}`);
}
