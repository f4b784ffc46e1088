import type { CreateFleetError, Host } from "@aws-sdk/client-ec2";
import {
  DriverError,
  type Log,
  labelTags,
  type MakeCall,
  type NodeMachines,
  noImage,
  wasRefused,
} from "@nodeyard/driver";
import type { AwsAccount } from "../account.ts";
import type { AwsOrder, AwsProviderConfig } from "../config.ts";
import { kindOf } from "../errors.ts";
import { fleetBody, type Resolved, runBody } from "./bodies.ts";
import type { Instances } from "./instances.ts";
import { type Templates, templateOf } from "./templates.ts";

/** What a provider's machines are made and found with. All state is in AWS. */
export interface Parts {
  readonly config: AwsProviderConfig;
  /** Shared with other providers of the credential; the rest is this provider's own. */
  readonly account: AwsAccount;
  readonly log: Log;
  readonly instances: Instances;
  readonly hosts: NodeMachines<Host>;
  readonly templates: Templates;
}

/**
 * Runs one instance, directly or by a fleet. EC2's client token makes a repeated call return the same instance. Rejects with "configuration"
 * for what EC2 does not know.
 */
export async function launchCall(
  parts: Parts,
  order: AwsOrder,
  host: string | null,
  signal: AbortSignal,
): Promise<MakeCall> {
  const { account, instances, log } = parts;
  const { own, name } = order.label;
  // The loader only warns, because Nodepool's validator accepts such a label.
  if (own.instanceType === null && own.fleet === null)
    throw new DriverError("configuration", `label ${name} has no size; add instance-type or fleet`);
  const imageId = await imageOf(account, order, signal);
  const [root, subnet] = await Promise.all([
    account.lookups.root(imageId, signal),
    subnetOf(account, order, signal),
  ]);
  const resolved = { imageId, root, subnet, host, tags: { ...labelTags(order, log), Name: order.hostname } };
  return instances.launching(order, async (token, until) => {
    if (own.fleet !== null) return runFleet(parts, order, resolved, token, until);
    const body = runBody(order, resolved, token);
    const id = (await account.aws.call("ec2.runInstances", body, until)).Instances?.[0]?.InstanceId;
    if (id === undefined) throw new DriverError("transient", "RunInstances answered without an instance");
    return id;
  });
}

/** The AMI of an order. Rejects with "configuration" when the label's image has no ready upload here, or its source names no AMI. */
async function imageOf(
  { lookups }: AwsAccount,
  { label, imageExternalId }: AwsOrder,
  signal: AbortSignal,
): Promise<string> {
  // The upload's AMI, which the launcher chose. It wins over a source, which only labels with a cloud image have.
  if (typeof imageExternalId === "string") return imageExternalId;
  const { source } = label.own;
  if (source === null) throw noImage(label);
  return lookups.image(source, signal);
}

/** The pool's subnet in the zone; of several, the one with the most free addresses. Null: the pool names none. */
async function subnetOf(
  { lookups }: AwsAccount,
  { pool, az }: AwsOrder,
  signal: AbortSignal,
): Promise<string | null> {
  const { subnets: names } = pool.own;
  // No list is needed. Without subnets EC2 takes the default one of the zone.
  if (names.length <= 1) return names[0] ?? null;
  const [best] = (await lookups.subnets(names, signal))
    .filter(({ AvailabilityZone }) => az === null || AvailabilityZone === az)
    .sort((a, b) => (b.AvailableIpAddressCount ?? 0) - (a.AvailableIpAddressCount ?? 0));
  if (best?.SubnetId !== undefined) return best.SubnetId;
  const why = `pool ${pool.name} has no subnet in zone ${az}; correct subnet-ids`;
  throw new DriverError("configuration", why);
}

/**
 * Makes one machine by an instant fleet, for which EC2 chooses among the label's instance types. Returns the id of the instance.
 * `token`: a repeated call gets the same fleet. Rejects with a DriverError when no type could be launched.
 */
async function runFleet(
  { account, templates }: Parts,
  order: AwsOrder,
  resolved: Resolved,
  token: string,
  signal: AbortSignal,
): Promise<string> {
  const label = order.label;
  const template = templateOf(label, order.pool.own, order.tag.provider, resolved.root.name);
  const body = fleetBody(order, resolved, template.name, token);
  // Twice at most: a missing template is made anew once. A second miss means that something deletes templates faster than they are used.
  for (let again = false; ; again = true) {
    await templates.ensure(template, signal);
    try {
      const { Instances, Errors = [] } = await account.aws.call("ec2.createFleet", body, signal);
      const id = Instances?.[0]?.InstanceIds?.[0];
      if (id !== undefined) return id;
      if (again || !Errors.some(({ ErrorCode = "" }) => NO_TEMPLATE.test(ErrorCode)))
        throw fleetError(Errors);
    } catch (error) {
      if (again || !wasRefused(error, NO_TEMPLATE)) throw error;
    }
    templates.forget(template);
  }
}

/** EC2 does not know the template: as an error of the call, or as one in its answer. */
const NO_TEMPLATE = /^InvalidLaunchTemplateName\.NotFound/;

/** An instant fleet reports its errors in the answer, one for each type. Errors of capacity only mean that another zone may work. */
function fleetError(errors: readonly CreateFleetError[]): DriverError {
  if (errors.length === 0)
    return new DriverError("transient", "the fleet made no machine: no reason is given");
  const faults = errors.map(({ ErrorCode: code = "Unknown", ErrorMessage: message = "" }) => ({
    text: `${message.trim()} (${code})`,
    kind: kindOf(code, message, 400),
  }));
  const said = [...new Set(faults.map(({ text }) => text))].join("; ");
  // The kind that leaves the most hope counts: if one type failed for capacity, another zone may have it, whatever the other types said.
  const rank = ["capacity", "quota", "transient", "access", "unsupported", "configuration"] as const;
  const kind = rank.find((one) => faults.some((fault) => fault.kind === one)) ?? "fatal";
  return new DriverError(kind, `the fleet made no machine: ${said}`);
}
