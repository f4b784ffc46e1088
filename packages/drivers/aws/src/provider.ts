import {
  type DriverContext,
  type LabelConfig,
  messageOf,
  type OpenFile,
  type PoolConfig,
  type Provider,
  provide,
  type Share,
  type StepContext,
  type Tag,
} from "@nodeyard/driver";
import type { AwsAccount } from "./account.ts";
import { codeOf } from "./client/index.ts";
import type { AwsLabelOwn, AwsPoolOwn, AwsProviderConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import { awsImageStore, listUploads, removeUploaded, uploadsOf } from "./images/index.ts";
import { machineResources, removeMachineResource } from "./leaks.ts";
import { hasEnded } from "./machines/instances.ts";
import { assertStays, isInterrupted, takeNotice } from "./machines/interruptions.ts";
import { type Parts, partsOf } from "./machines/parts.ts";
import { machineType } from "./machines/run-body.ts";
import { instanceSteps } from "./machines/steps.ts";
import { followNotices, type Notice } from "./notices.ts";
import { labelAmounts, labelCodes } from "./quota/amounts.ts";

/**
 * One provider of an account and region. No I/O by itself, but with a notice queue or spot labels it follows notices until
 * `close`. `parts` is for the checks when the provider opens.
 */
export function awsProvider(
  config: AwsProviderConfig,
  context: DriverContext,
  share: Share<AwsAccount>,
  openFile: OpenFile,
): { readonly provider: Provider; readonly parts: Parts } {
  const closed = new AbortController();
  const { account } = share;
  const parts = partsOf(config, context, account, closed.signal);
  const labels = config.pools.flatMap(({ labels: all }) => [...all.values()]);
  // Only these quotas count. Others of the account have nothing to do with the labels, and a quota of 0 must not stop the provider.
  const codes = new Set(labels.flatMap(({ own }) => labelCodes(own)));
  const uploads = uploadsOf(config, account.aws, context.clock, openFile);
  const owner = { installation: context.installation, provider: config.name };
  const provider = provide(
    config.name,
    {
      place: () => account.place,
      offers: {
        types: { of: (label) => machineType((label as LabelConfig<AwsLabelOwn>).own) },
        ...(config.own.priceApi && {
          prices: { of: (type, az, signal) => account.prices.of(type, az, signal) },
        }),
        // Launches and deletions wait at the limiter of writes, so it is the one that an operator needs to see.
        pace: { now: () => account.pace.writes },
        zones: { list: (pool, signal) => zonesOf(account, pool as PoolConfig<AwsPoolOwn>, signal) },
        handover: { ready: (tag, step) => assertStays(parts, tag, step) },
        console: { read: (tag, step) => consoleOf(parts, tag, step) },
        images: awsImageStore(uploads),
      },
      ...instanceSteps(parts),
      async find(tag, signal, stored = null) {
        const found = await parts.instances.find(tag, stored, signal);
        if (found?.InstanceId === undefined || hasEnded(found)) return undefined;
        const host = found.Placement?.HostId;
        // The form in which the id is stored, so that a removal by it releases the host too.
        return { ...(host !== undefined && { host }), instance: found.InstanceId };
      },
      async list(signal) {
        const [machines, images] = await Promise.all([
          machineResources(account, { codes, interrupted: isInterrupted }, signal),
          listUploads(uploads, owner, signal),
        ]);
        return [...machines, ...images];
      },
      removeResource: (resource, signal) =>
        // Only resources of uploads have the tag of an image.
        resource.imageTag == null
          ? removeMachineResource(account, resource, signal)
          : removeUploaded(uploads, resource, signal),
      async quota(signal) {
        if (codes.size === 0) return {};
        try {
          return await account.quotas.of(codes, signal);
        } catch (error) {
          // Reading quotas needs a right that Nodepool's policies for EC2 lack. EC2 refuses launches beyond a quota by itself.
          if (!/^AccessDenied/.test(codeOf((error as Error).cause ?? error))) throw error;
          const facts = { provider: config.name, error: messageOf(error) };
          context.log.warn(facts, "may not read service quotas; only the limits of the file count");
          return {};
        }
      },
      async need(label, signal) {
        const { own } = label as LabelConfig<AwsLabelOwn>;
        const { instanceType } = own;
        return labelAmounts(
          own,
          instanceType === null ? null : await account.lookups.type(instanceType, signal),
        );
      },
      async close() {
        closed.abort(new Error(`provider ${config.name} is closed`));
        await share.release();
      },
    },
    mapError,
  );
  const { noticeQueue: queue } = config.own;
  // A message that is taken is gone for all others, so only a launcher, which can tell the users, takes any.
  if (context.purpose !== "look" && (queue !== null || labels.some(({ own }) => own.spot))) {
    const { clock, random, log } = context;
    const take = (notice: Notice) => takeNotice(parts, context, notice, closed.signal);
    // Never rejects. `closed` ends it.
    const impaired = (why: string | null) => context.impaired?.("the notice queue", why);
    void followNotices({ aws: account.aws, queue, clock, random, log, take, impaired }, closed.signal);
  }
  return { provider, parts };
}

/** The console of a tag's machine; null when it has none or has ended. EC2 keeps the last 64 KiB, and shows them some minutes late. */
async function consoleOf(
  { account, instances }: Parts,
  tag: Tag,
  { externalId, signal }: StepContext,
): Promise<string | null> {
  const found = await instances.existing(tag, externalId, signal);
  if (found?.InstanceId === undefined || hasEnded(found)) return null;
  const asked = { InstanceId: found.InstanceId };
  const { Output } = await account.aws.ec2((ec2, to) => ec2.getConsoleOutput(asked, to), signal);
  return Buffer.from(Output ?? "", "base64").toString();
}

/** Zones in which the pool has a subnet, sorted. A zone without one cannot be chosen, whatever the region has. */
async function zonesOf(
  account: AwsAccount,
  pool: PoolConfig<AwsPoolOwn>,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const subnets = await account.lookups.subnets(pool.own.subnets, signal);
  return [...new Set(subnets.flatMap(({ AvailabilityZone: zone }) => zone ?? []))].sort();
}
