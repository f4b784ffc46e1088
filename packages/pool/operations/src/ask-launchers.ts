import { type Answer, askMembers, type ProviderUse, type TenantUse } from "@nodeyard/asking";
import type { SliverMachine } from "@nodeyard/driver";
import type { OperationHandles } from "./handles.ts";

export type { TenantUse };

/** A provider as the launcher on that host serves it. */
export type LauncherUse = ProviderUse & { readonly launcher: string };

/** The machines of which the nodes of a provider are slivers, as its launcher reached them just now. */
export interface ProviderMachines {
  readonly provider: string;
  /** Why it could not be asked; null: it was. */
  readonly error: string | null;
  readonly machines: readonly SliverMachine[];
}

/** How long launchers have to answer, milliseconds: a person waits. */
const WITHIN_MS = 3_000;

/**
 * Asks all launchers for the state of a provider. Launchers of another release, or too slow ones, are left out: their hosts are
 * registered, so the caller can name who is missing. Never rejects. Costs one znode for the question and one for each answer,
 * which are deleted.
 */
export async function askProvider(
  handles: OperationHandles,
  provider: string,
): Promise<readonly LauncherUse[]> {
  const { answers } = await askMembers(handles, { provider }, WITHIN_MS);
  return answers.flatMap(({ hostname, testimony }) =>
    (testimony.providers ?? []).map((standing) => ({ launcher: hostname, ...standing })),
  );
}

/**
 * What tenants and their clients have, wait for and have spent. Launchers with one configuration know the same, so that the first answer
 * is enough; undefined: no launcher answers. Never rejects.
 */
export async function askTenants(handles: OperationHandles): Promise<readonly TenantUse[] | undefined> {
  const knows = ({ testimony }: Answer) => testimony.tenants !== undefined;
  const { answers } = await askMembers(handles, { tenants: true }, WITHIN_MS, knows);
  return answers.find(knows)?.testimony.tenants;
}
