import type { Instance } from "@aws-sdk/client-ec2";
import {
  type DriverContext,
  DriverError,
  messageOf,
  type StepContext,
  sameNode,
  type Tag,
  tagOf,
} from "@nodeyard/driver";
import { metadataOf } from "../tags.ts";
import { hasEnded, idsOf } from "./instances.ts";
import type { Parts } from "./launch.ts";

/** An event of EventBridge about an instance (Amazon EC2 User Guide, "Automate Amazon EC2 using EventBridge"). */
export interface Notice {
  readonly instance: string;
  /** state: the instance's state changed. interruption: EC2 interrupts a spot instance two minutes after `at`. */
  readonly kind: "state" | "interruption";
  /** ISO time. */
  readonly at: string;
}

/** Tag of an instance whose interruption EC2 has announced. The first launcher that learns it sets the tag, which informs all of them. */
const INTERRUPTED = "nodeyard_interrupted";

/** Whether a launcher has marked the instance. The machine may still run for two minutes. */
export function isInterrupted(instance: Instance): boolean {
  return metadataOf(instance.Tags)[INTERRUPTED] !== undefined;
}

/**
 * Handles a notice: refreshes the list of instances, and marks an interrupted spot machine and informs its user. Rejects when EC2
 * cannot be asked; the notice then comes again. Notices of other providers and installations are read too, as they share the
 * account, and are passed over.
 */
export async function takeNotice(
  { account, config, log }: Parts,
  { installation, remark }: Pick<DriverContext, "installation" | "remark">,
  { kind, instance: id, at }: Notice,
  signal: AbortSignal,
): Promise<void> {
  // Any change of state may be one that a step waits for.
  account.instances.hint();
  if (kind !== "interruption") return;
  const instance = (await account.instances.all(signal, true)).get(id);
  const tag = tagOf(metadataOf(instance?.Tags));
  if (instance === undefined || tag?.installation !== installation || tag.provider !== config.name) return;
  // Another launcher has taken it.
  if (isInterrupted(instance)) return;
  // Before the tag is set: if the launcher dies in between, the notice comes again and users see it twice, not never.
  remark?.(tag, `EC2 takes the spot machine ${id} back two minutes after ${at}`, true);
  const Tags = [{ Key: INTERRUPTED, Value: at }];
  await account.aws.call("ec2.createTags", { Resources: [id], Tags }, signal);
  // From now on the shared list shows the tag to every reader of this process.
  await account.instances.all(signal, true);
  log.warn({ node: tag.nodeId, instance: id, at }, "EC2 takes a spot machine back");
}

/** Checks a ready node before its assignment. Rejects when EC2 is about to interrupt it, but not when EC2 cannot be asked. */
export async function assertStays(
  { account, config, log }: Parts,
  tag: Tag,
  { signal }: StepContext,
): Promise<void> {
  const place = `${config.name}: node ${tag.nodeId}`;
  const listed = await account.instances.all(signal, false).catch((error: unknown) => {
    signal.throwIfAborted();
    log.warn({ node: tag.nodeId, error: messageOf(error) }, "cannot see whether EC2 takes a machine back");
  });
  if (listed === undefined) return;
  const own = [...listed.values()].find(({ Tags }) => sameNode(tagOf(metadataOf(Tags)), tag));
  if (own === undefined) throw new DriverError("not-found", `${place} has no instance any more`);
  const { InstanceId, State } = own;
  if (isInterrupted(own) || hasEnded(own))
    throw new DriverError("transient", `${place}: EC2 takes instance ${InstanceId} back (${State?.Name})`);
}

/**
 * Why EC2 ended a machine before it was removed; undefined when it did not, or gave no reason. It becomes a remark of the node,
 * so that its users learn why their job failed.
 */
export async function interruptionOf(
  { instances }: Parts,
  found: Instance | undefined,
  { externalId, signal }: StepContext,
): Promise<string | undefined> {
  const id = idsOf(externalId).instance;
  // Terminated instances are not in the list of machines.
  const instance = found ?? (id === undefined ? undefined : await instances.single(id, signal));
  const code = instance?.StateReason?.Code ?? "";
  const taken = /Server\.SpotInstance(Termination|Shutdown)/.test(code);
  if (instance === undefined || !(taken || isInterrupted(instance))) return undefined;
  return `EC2 took the spot machine ${instance.InstanceId} back (${code || "interruption notice"})`;
}
