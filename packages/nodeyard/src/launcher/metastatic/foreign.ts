import { DriverError } from "@nodeyard/driver";
import { decodeComponent, paths, RecordError } from "@nodeyard/model";
import { TreeError } from "@nodeyard/tree";
import type { Context } from "../context.ts";

const MEMBERS = "/nodeyard/members";

type Handles = Pick<Context, "tree" | "view">;

/**
 * Registered pools of a provider whose session no Nodeyard member has: launchers of another kind keep slots in their own memory and
 * see no claim of ours, so that the two would give one slot twice.
 */
export async function foreignPools({ tree, view }: Handles, provider: string): Promise<readonly string[]> {
  const pools = [...view.components.values()].filter(
    ({ kind, record }) => kind === "pool" && record.providerName === provider && record.state !== "stopped",
  );
  if (pools.length === 0) return [];
  const [members, owners] = await Promise.all([
    tree.children(MEMBERS).catch(noneWhenMissing),
    Promise.all(pools.map(({ key }) => tree.stat(`${paths.components}/${key}`))),
  ]);
  return pools.flatMap(({ record }, index) => {
    const owner = owners[index]?.ephemeralOwner;
    // One without a session is debris that nobody serves.
    if (owner === undefined || owner === 0n) return [];
    const suffix = `-${owner.toString(16)}`;
    return members.some((name) => name.endsWith(suffix)) ? [] : [record.id ?? record.hostname];
  });
}

export function foreignError(provider: string, pools: readonly string[]): DriverError {
  return new DriverError(
    "configuration",
    `provider ${provider} is served by a launcher of another kind too (${pools.join(", ")}): stop that launcher, or take the provider out of one of the two configurations`,
  );
}

/** Whether anyone serves a provider: asked of the tree, so that of several who leave at once the last one knows that it is. */
export async function isServed({ tree }: Pick<Handles, "tree">, provider: string): Promise<boolean> {
  const parent = paths.component("pool");
  await tree.sync(parent);
  const names = await tree.children(parent).catch(noneWhenMissing);
  const served = await Promise.all(
    names.map(async (name) => {
      try {
        const { data } = await tree.get(`${parent}/${name}`);
        const { providerName, state } = decodeComponent(data);
        return providerName === provider && state !== "stopped";
      } catch (error) {
        // It left meanwhile, or makes no sense: whoever wrote that is no launcher of ours.
        if (error instanceof RecordError || isMissing(error)) return false;
        throw error;
      }
    }),
  );
  return served.includes(true);
}

function noneWhenMissing(error: unknown): readonly string[] {
  if (isMissing(error)) return [];
  throw error;
}

function isMissing(error: unknown): boolean {
  return error instanceof TreeError && error.code === "tree.no_node";
}
