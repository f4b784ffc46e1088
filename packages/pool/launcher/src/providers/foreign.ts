import { Controller, MEMBERS } from "@nodeyard/coordination";
import { decodeComponent, paths } from "@nodeyard/model";
import { isMemberSession, readAll } from "@nodeyard/operations";
import { errorClass, messageOf } from "@nodeyard/runtime";
import { orUndefined } from "@nodeyard/tree";
import type { Handles } from "../handles.ts";

/** Launchers of another kind serve a provider that launchers of one kind alone may serve. */
export class ForeignLauncher extends errorClass("launcher.foreign_launcher") {}

/** A Nodeyard launcher is recognized by its member znode, which may appear after its pool: look again after this time, milliseconds. */
const LOOK_MS = 3_000;

type Registered = Pick<Handles, "tree" | "view">;

/**
 * Rejects when Python launchers serve a provider of static hosts or of slots on backing nodes. They keep slots in their own memory and
 * register static hosts without our lock, so that both kinds together would give out one slot or host twice.
 */
export async function refuseForeign(handles: Registered, provider: string): Promise<void> {
  const foreign = await foreignPools(handles, provider);
  if (foreign.length > 0) throw foreignError(provider, foreign);
}

/**
 * Calls `onForeign` when a launcher of another kind begins to serve a provider of ours. `onForeign` may be called more than once. A
 * tree that cannot be read is asked again; meanwhile the provider is served.
 */
export function foreignWatch(
  handles: Handles,
  provider: string,
  onForeign: (why: Error) => void,
): { close(): void } {
  // When a pool of the provider last appeared or changed, monotonic milliseconds. Its member may follow up to 3 s later.
  let seen = handles.clock.monotonic();
  const controller = new Controller(handles, {
    name: `other launchers of ${provider}`,
    site: "launcher/providers/foreign.ts",
    reconcile: async (stop) => {
      const early = seen + LOOK_MS - handles.clock.monotonic();
      if (early > 0) return early;
      const foreign = await foreignPools(handles, provider);
      if (foreign.length > 0 && !stop.aborted) onForeign(foreignError(provider, foreign));
      return undefined;
    },
    failed: (error) => {
      const facts = { provider, error: messageOf(error) };
      handles.log.warn(facts, "cannot read who else serves this provider; will retry");
      return LOOK_MS;
    },
  });
  const unsubscribe = handles.view.onEvent((event) => {
    if (event.type !== "component" || event.after?.kind !== "pool") return;
    if (event.after.record.providerName !== provider) return;
    seen = handles.clock.monotonic();
    controller.wake(LOOK_MS);
  });
  // One may have come since the provider was opened.
  controller.wake(LOOK_MS);
  return {
    close: () => {
      unsubscribe();
      void controller.close();
    },
  };
}

/**
 * Registered pools of a provider whose session no Nodeyard member has. Resolves with their launcher-pool ids, or with the host where a
 * pool has no id. Rejects when the tree does not answer.
 */
export async function foreignPools({ tree, view }: Registered, provider: string): Promise<readonly string[]> {
  const pools = [...view.components.values()].filter(
    ({ kind, record }) => kind === "pool" && record.providerName === provider && record.state !== "stopped",
  );
  if (pools.length === 0) return [];
  const [members, owners] = await Promise.all([
    orUndefined(tree.children(MEMBERS)),
    Promise.all(pools.map(({ key }) => tree.stat(`${paths.components}/${key}`))),
  ]);
  return pools.flatMap(({ record }, index) => {
    // The session that made the pool's component.
    const owner = owners[index]?.ephemeralOwner;
    // A component without a session is left over from a dead launcher.
    if (owner === undefined || owner === 0n) return [];
    return isMemberSession(members ?? [], owner) ? [] : [record.id ?? record.hostname];
  });
}

function foreignError(provider: string, pools: readonly string[]): ForeignLauncher {
  return new ForeignLauncher(
    `provider ${provider} is also served by a launcher that is not Nodeyard's (${pools.join(", ")}): stop that launcher, or remove the provider from one of the two configurations`,
  );
}

/** Whether anyone serves a provider: asked of the tree, so that of several who leave at once the last one knows that it is. */
export async function isServed({ tree }: Pick<Handles, "tree">, provider: string): Promise<boolean> {
  const parent = paths.component("pool");
  await tree.sync(parent);
  // An unreadable component does not come from a Nodeyard launcher.
  const { items } = await readAll(tree, parent, (_, data) => decodeComponent(data));
  return items.some(({ providerName, state }) => providerName === provider && state !== "stopped");
}
