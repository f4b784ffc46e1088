import {
  type CreateOrder,
  DriverError,
  deadline,
  type Machine,
  messageOf,
  type StepContext,
  type Steps,
  type Tag,
} from "@nodeyard/driver";
import type { Accelerator } from "./edge/accelerators.ts";
import { Boot } from "./edge/boot.ts";
import type { HostFolder } from "./edge/host-folder.ts";
import { SavedBoot } from "./edge/saved-boot.ts";
import type { Sources } from "./edge/start.ts";
import type { SavedState } from "./edge/states.ts";
import { needOf } from "./machine/amounts.ts";
import { nodeName } from "./names.ts";

/** Time limit of a step without a copy or a boot, milliseconds. */
const STEP_MS = 60_000;
/** Time limit for continuing from a saved state, in addition to the guest's own boot: the state is written and read. Milliseconds. */
const RESUME_MS = 180_000;
/** Time limit of copying an image, milliseconds: the first machine of an image waits for it. */
const IMAGE_MS = 30 * 60_000;

/**
 * Makes a machine, starting with whatever an earlier call left. Steps: folder, image, saved-state and resume (if the label says
 * so), disk, kvm-probe, start, host-keys. A machine that runs already is only described. Rejects with kind "quota" when the
 * folder has no room.
 */
export async function* createSteps(
  host: HostFolder,
  order: CreateOrder,
  { signal, externalId }: StepContext,
): Steps<Machine> {
  const boot = new Boot(host, order);
  const { name } = boot;
  const kept = externalId === name ? {} : { save: { externalId: name } };
  yield { step: "folder", deadlineMs: STEP_MS, ...kept };
  await host.claim(name, { hostname: order.hostname, resources: needOf(order.label) });

  const saved = new SavedBoot(boot);
  // A guest that its launcher restored but did not release would never answer.
  if (await saved.halfway()) await host.reset(name, signal);
  let resumed = false;
  if ((await host.nodes.running(name)) === undefined) {
    yield { step: "image", deadlineMs: IMAGE_MS };
    const sources = await boot.images(signal);
    resumed = yield* resume(boot, saved, sources, signal);
    if (!resumed) yield* coldStart(boot, sources, signal);
  }
  const running = await host.nodes.running(name);
  if (running === undefined)
    throw new DriverError("transient", `${host.config.name}: the machine of ${order.hostname} ended at once`);
  const machine = await describe(boot, running.port);
  if (!resumed || !order.label.hostKeyChecking || !boot.showsKeys) return machine;

  yield { step: "host-keys", deadlineMs: STEP_MS };
  const hostKeys = await saved.hostKeys(running.port, signal);
  return hostKeys === undefined ? machine : { ...machine, hostKeys };
}

/** Removes a machine, whatever is left of it. The tag identifies it; the stored id is not used. */
export async function* removeSteps(host: HostFolder, tag: Tag, { signal }: StepContext): Steps<void> {
  const name = nodeName(tag);
  yield { step: "stop", deadlineMs: STEP_MS };
  await host.stop(name, signal);

  yield { step: "discard", deadlineMs: STEP_MS };
  await host.discard(name);
}

/** Boots the machine from its image: makes the disk, finds the accelerator, starts QEMU. */
async function* coldStart(boot: Boot, sources: Sources, signal: AbortSignal): Steps<void> {
  yield { step: "disk", deadlineMs: STEP_MS };
  await boot.disk(sources, signal);

  const { accelerator, runs } = yield* accelerate(boot, signal);
  if (runs) return;
  yield { step: "start", deadlineMs: STEP_MS };
  // Again, because a failed probe removed the disk that its guest had written to. An existing one is kept.
  await boot.disk(sources, signal);
  await boot.start(accelerator, signal);
}

/**
 * Continues the machine from a saved state. False when it must boot: the label says so, its disk exists already, it is not known
 * yet whether KVM works, or continuing failed, which is logged and cleaned up.
 */
async function* resume(boot: Boot, saved: SavedBoot, sources: Sources, signal: AbortSignal): Steps<boolean> {
  const { host, order } = boot;
  const { config, context, saving } = host;
  if (!boot.own.savedState || (await boot.hasDisk())) return false;
  const accelerator = await settled(boot);
  if (accelerator === undefined) return false;
  const limitMs = config.bootTimeoutMs + RESUME_MS;
  let state: SavedState | undefined;
  try {
    yield { step: "saved-state", deadlineMs: limitMs };
    state = await saved.state(sources, accelerator, signal);
    yield { step: "resume", deadlineMs: limitMs };
    // In a shorter time, so that the machine can still boot within its step.
    const ms = config.bootTimeoutMs;
    const late = () => new DriverError("timeout", `the guest did not continue within ${ms} ms`);
    using limit = deadline(context.clock, ms, late, signal);
    await saved.resume(state, accelerator, limit.signal);
    saving.proven(state.key);
    return true;
  } catch (error) {
    signal.throwIfAborted();
    const facts = { provider: config.name, label: order.label.name, why: messageOf(error) };
    context.log.warn(facts, "cannot start from a saved state: the machine boots");
    // A step of its own, so that it is counted in the metrics and shown in the node's history.
    yield { step: "saved-state-failed", deadlineMs: STEP_MS };
    // Without a state it was the making that failed, which `Saving` has counted already.
    if (state !== undefined) await saving.spoiled(state.key);
    await host.reset(boot.name, signal);
    return false;
  }
}

/** With `auto` the first machine of an image is the probe. If it answers under KVM it keeps running. `runs`: it is that machine. */
async function* accelerate(
  boot: Boot,
  signal: AbortSignal,
): Steps<{ readonly accelerator: Accelerator; readonly runs: boolean }> {
  const { host, order } = boot;
  const { config, context, accelerators } = host;
  const known = await settled(boot);
  if (known !== undefined) return { accelerator: known, runs: false };
  const key = await accelerators.key(boot.files());

  yield { step: "kvm-probe", deadlineMs: config.own.probeTimeoutMs + 2 * STEP_MS };
  // One probe per image: the other machines wait for its result.
  const awaited = accelerators.awaited(key, signal);
  if (awaited !== undefined) return { accelerator: await awaited, runs: false };
  const accelerator = await accelerators.probe(key, () => boot.probe(signal));
  context.log.info({ provider: config.name, image: order.label.image?.name, accelerator }, "probe boot");
  return { accelerator, runs: accelerator === "kvm" };
}

/** The accelerator of the machine; undefined when a probe must decide. */
async function settled(boot: Boot): Promise<Accelerator | undefined> {
  const { host, showsKeys } = boot;
  const { accelerator } = host.config.own;
  if (accelerator !== "auto") return accelerator;
  // Only a host key proves that the guest runs: user-mode networking accepts connections on every forwarded port.
  if (!showsKeys || !(await host.kvm())) return "tcg";
  return host.accelerators.get(await host.accelerators.key(boot.files()));
}

/** The machine for the node's record. `forwarded`: the host's port that leads to the guest; null: the guest has an address of its own. */
async function describe(boot: Boot, forwarded: number | null): Promise<Machine> {
  const { host, order } = boot;
  const { wanted } = await boot.facts();
  const { host: address, port } = boot.reached(wanted, forwarded);
  const ipv6 = address.includes(":");
  return {
    externalId: boot.name,
    interfaceIp: address,
    publicIpv4: ipv6 ? null : address,
    publicIpv6: ipv6 ? address : null,
    hostname: order.hostname,
    hostId: host.host.name,
    resources: needOf(order.label),
    // The guest's port is reached through a port of this host.
    ...(forwarded === null ? {} : { connection: { port } }),
  };
}
