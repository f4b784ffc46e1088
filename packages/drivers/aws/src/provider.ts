import type { Instance } from "@aws-sdk/client-ec2";
import type { Cloud, DriverContext, LabelConfig, OpenFile, PoolConfig } from "@nodeyard/driver";
import type { AwsAccount } from "./account.ts";
import type { AwsLabelOwn, AwsPoolOwn, AwsProviderConfig } from "./config.ts";
import { awsImages } from "./images/store.ts";
import { amountsOf, besideInstances } from "./leaks.ts";
import { machineType } from "./machines/bodies.ts";
import { hostsOf } from "./machines/hosts.ts";
import { instancesOf } from "./machines/instances.ts";
import { assertStays, isInterrupted } from "./machines/interruptions.ts";
import { instanceWork } from "./machines/steps.ts";
import { templatesOf } from "./machines/templates.ts";
import { followNotices } from "./notices.ts";
import { pricesOf } from "./prices.ts";
import { labelAmounts, labelCodes } from "./quota/amounts.ts";

/**
 * A provider of an account and region. With a notice queue or spot labels it follows notices until it is closed. `closed` ends what goes on
 * without a caller.
 */
export function awsCloud(
  config: AwsProviderConfig,
  context: DriverContext,
  account: AwsAccount,
  openFile: OpenFile,
  closed: AbortSignal,
): Cloud<Instance, string | null> {
  const { aws, lookups } = account;
  const { clock, log, purpose, installation } = context;
  const parts = {
    ...{ config, account, log },
    instances: instancesOf(account, clock, closed),
    hosts: hostsOf(account, clock, closed),
    templates: templatesOf(account, config, installation, log),
  };
  const labels = config.pools.flatMap(({ labels: all }) => [...all.values()]);
  // Only these quotas count. Others of the account have nothing to do with the labels, and a quota of 0 must not stop the provider.
  const codes = new Set(labels.flatMap(({ own }) => labelCodes(own)));
  const owner = { installation, provider: config.name };
  const images = awsImages({ aws, clock, openFile, settings: config.own, owner });
  return {
    ...instanceWork(parts),
    parts: { ...besideInstances(account, codes), ...images.parts },
    partsOf: ({ Placement }) => [Placement?.HostId],
    // It still runs for two minutes.
    isEnding: isInterrupted,
    amounts: (listed, signal) => amountsOf(account, codes, listed, signal),
    quota: (signal) => lookups.quotas(codes, { provider: config.name, log }, signal),
    async need({ own }: LabelConfig<AwsLabelOwn>, signal) {
      const { instanceType: type } = own;
      return labelAmounts(own, type === null ? null : await lookups.type(type, signal));
    },
    // EC2 keeps the last 64 KiB, and shows them some minutes late.
    async console(InstanceId, signal) {
      const { Output = "" } = await aws.call("ec2.getConsoleOutput", { InstanceId }, signal);
      return Buffer.from(Output, "base64").toString();
    },
    typeOf: ({ own }: LabelConfig<AwsLabelOwn>) => machineType(own),
    async zones({ own }: PoolConfig<AwsPoolOwn>, signal) {
      // A zone without a subnet of the pool cannot be chosen, whatever the region has.
      const subnets = await lookups.subnets(own.subnets, signal);
      return [...new Set(subnets.flatMap(({ AvailabilityZone: zone }) => zone ?? []))].sort();
    },
    ...{ limiter: aws.pace.writes, images: images.store },
    ...(config.own.priceApi && { prices: pricesOf(aws, lookups, clock) }),
    handover: { ready: (tag, step) => assertStays(parts, tag, step) },
    place: () => account.place,
    async check(signal) {
      await account.instances.all(signal, false);
      await account.locate(signal);
      // A message that is taken is gone for all others, so only a launcher, which can tell the users, takes any.
      if (purpose === "look") return;
      await parts.templates.reconcile(signal);
      const hasNotices = config.own.noticeQueue !== null || labels.some(({ own }) => own.spot);
      if (hasNotices) void followNotices(parts, context, closed);
    },
  };
}
