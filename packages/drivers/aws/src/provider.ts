import type { Instance } from "@aws-sdk/client-ec2";
import {
  cloudProvider,
  type DriverContext,
  type LabelConfig,
  messageOf,
  type OpenFile,
  type PoolConfig,
  type Provider,
  type Resources,
  type Share,
} from "@nodeyard/driver";
import type { AwsAccount } from "./account.ts";
import { codeOf } from "./client/index.ts";
import type { AwsLabelOwn, AwsPoolOwn, AwsProviderConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import { awsImageStore, uploadedParts } from "./images/index.ts";
import { amountsOf, besideInstances } from "./leaks.ts";
import { machineType } from "./machines/bodies.ts";
import { assertStays, isInterrupted, takeNotice } from "./machines/interruptions.ts";
import { partsOf } from "./machines/parts.ts";
import { instanceWork } from "./machines/steps.ts";
import { followNotices, type Notice } from "./notices.ts";
import { pricesOf } from "./prices.ts";
import { labelAmounts, labelCodes } from "./quota/amounts.ts";

/** Opens a provider of an account and region. With a notice queue or spot labels it follows notices until it is closed. */
export function awsProvider(
  config: AwsProviderConfig,
  context: DriverContext,
  shared: () => Share<AwsAccount>,
  openFile: OpenFile,
): Promise<Provider> {
  return cloudProvider<Instance, string | null>(config, mapError, (closed) => {
    const share = shared();
    const { account } = share;
    const { clock, random, log, purpose, installation } = context;
    const parts = partsOf(config, context, account, closed);
    const labels = config.pools.flatMap(({ labels: all }) => [...all.values()]);
    // Only these quotas count. Others of the account have nothing to do with the labels, and a quota of 0 must not stop the provider.
    const codes = new Set(labels.flatMap(({ own }) => labelCodes(own)));
    const uploads = { aws: account.aws, clock, openFile, settings: config.own };
    return {
      ...instanceWork(parts),
      parts: {
        ...besideInstances(account, codes),
        ...uploadedParts(uploads, { installation, provider: config.name }),
      },
      partsOf: ({ Placement }) => [Placement?.HostId],
      // It still runs for two minutes.
      isEnding: isInterrupted,
      amounts: (listed, signal) => amountsOf(account, codes, listed, signal),
      quota: (signal) => quotaOf(account, codes, config.name, log, signal),
      async need({ own }: LabelConfig<AwsLabelOwn>, signal) {
        const { instanceType } = own;
        return labelAmounts(
          own,
          instanceType === null ? null : await account.lookups.type(instanceType, signal),
        );
      },
      // EC2 keeps the last 64 KiB, and shows them some minutes late.
      async console(InstanceId, signal) {
        const { Output } = await account.aws.call("ec2.getConsoleOutput", { InstanceId }, signal);
        return Buffer.from(Output ?? "", "base64").toString();
      },
      offers: {
        types: { of: (label) => machineType((label as LabelConfig<AwsLabelOwn>).own) },
        ...(config.own.priceApi && { prices: pricesOf(account.aws, account.lookups, clock) }),
        // Launches and deletions wait at the limiter of writes, so it is the one that an operator needs to see.
        pace: { now: () => account.pace.writes },
        zones: { list: (pool, signal) => zonesOf(account, pool as PoolConfig<AwsPoolOwn>, signal) },
        handover: { ready: (tag, step) => assertStays(parts, tag, step) },
        images: awsImageStore(uploads),
      },
      place: () => account.place,
      async check(signal) {
        await account.instances.all(signal, false);
        await account.locate(signal);
        // A message that is taken is gone for all others, so only a launcher, which can tell the users, takes any.
        if (purpose === "look") return;
        await parts.templates.reconcile(signal);
        const { noticeQueue: queue } = config.own;
        if (queue === null && !labels.some(({ own }) => own.spot)) return;
        const take = (notice: Notice) => takeNotice(parts, context, notice, closed);
        const impaired = (why: string | null) => context.impaired?.("the notice queue", why);
        // Never rejects. `closed` ends it.
        void followNotices({ aws: account.aws, queue, clock, random, log, take, impaired }, closed);
      },
      close: () => share.release(),
    };
  });
}

/** The quotas with these codes. Without the right to read them, EC2 refuses launches beyond them by itself: Nodepool's policies lack it. */
async function quotaOf(
  account: AwsAccount,
  codes: ReadonlySet<string>,
  provider: string,
  log: DriverContext["log"],
  signal: AbortSignal,
): Promise<Resources> {
  if (codes.size === 0) return {};
  try {
    return await account.lookups.quotas(codes, signal);
  } catch (error) {
    if (!/^AccessDenied/.test(codeOf((error as Error).cause ?? error))) throw error;
    const facts = { provider, error: messageOf(error) };
    log.warn(facts, "may not read service quotas; only the limits of the file count");
    return {};
  }
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
