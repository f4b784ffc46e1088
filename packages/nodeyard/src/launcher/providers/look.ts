import type { Driver, Provider, ProviderConfig, Resource, Scanner } from "@nodeyard/driver";
import { type Clock, deadline, NodeyardError, type Random } from "@nodeyard/runtime";
import { closeQuietly, inTime } from "../../coordination/index.ts";
import type { Log } from "../../telemetry/index.ts";

const OPEN_MS = 60_000;
const LIST_MS = 120_000;

/** Everything that a provider lists, for people who want to see it: nothing is changed. Rejects with the driver's error. */
export async function listResources(
  driver: Driver,
  config: ProviderConfig,
  handles: {
    readonly clock: Clock;
    readonly random: Random;
    readonly scan: Scanner;
    readonly log: Log;
    readonly installation: string;
  },
): Promise<readonly Resource[]> {
  const { clock } = handles;
  const silent = (ms: number) =>
    new NodeyardError("launcher.provider_silent", `provider ${config.name} did not answer within ${ms} ms`);
  const close = (opened: Provider) => closeQuietly(handles, config.name, opened);
  const opening = driver.open(config, handles);
  const provider = await inTime(
    clock,
    OPEN_MS,
    opening,
    () => silent(OPEN_MS),
    (late) => void close(late),
  );
  const limit = deadline(clock, LIST_MS, () => silent(LIST_MS));
  try {
    return await inTime(clock, LIST_MS, provider.list(limit.signal), () => silent(LIST_MS));
  } finally {
    limit.cancel();
    await close(provider);
  }
}
