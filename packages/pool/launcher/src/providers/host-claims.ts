import type { Connection } from "@nodeyard/driver";
import { decodeHostClaim, encodeHostClaim, HOST_CLAIMS, hostClaimPath } from "@nodeyard/model";
import { ensurePath, type Op, orUndefined } from "@nodeyard/tree";
import type { RecordHandles } from "../held-records.ts";
import { removeRecord } from "../nodes/delete-node.ts";
import { lockNode } from "../nodes/node-lock.ts";
import { isServedByOthers } from "./left-providers.ts";

/**
 * The operation that makes a host this provider's, for the commit that registers a node of it; or the provider that has it. Every
 * registration writes the claim, so of two providers that both found the host free only one registers. A claim ends with the last
 * node of its provider, or when nobody serves that provider and its nodes are free, as after a rename. Rejects with the error of the tree or of an unreadable claim.
 */
export async function claimHost(
  context: RecordHandles,
  provider: string,
  address: string | null | undefined,
  { username, port }: Connection,
): Promise<{ readonly op: Op } | { readonly heldBy: string }> {
  const { tree, view } = context;
  const login = loginOf(username, address, port);
  const path = hostClaimPath(login);
  const data = encodeHostClaim(provider);
  const found = await orUndefined(tree.get(path));
  if (found === undefined) {
    await ensurePath(tree, HOST_CLAIMS);
    return { op: { op: "create", path, data } };
  }
  const heldBy = decodeHostClaim(login, found.data);
  if (heldBy !== provider) {
    // Writes from before the claim that was read are seen after this.
    await view.resync();
    const nodes = [...view.nodes.byProvider.get(heldBy)].filter((id) => {
      const { username, interfaceIp, connectionPort } = view.nodes.byId.get(id)!.record;
      return loginOf(username, interfaceIp, connectionPort) === login;
    });
    if (view.unreadable.ofProvider(heldBy).length > 0) return { heldBy };
    for (const id of nodes)
      if (isServedByOthers(view, heldBy) || !(await takeFree(context, id))) return { heldBy };
  }
  return { op: { op: "set", path, data, version: found.stat.version } };
}

/** Deletes the record of a free node, as its own provider would when its host leaves the file; false: it has a user. */
async function takeFree(context: RecordHandles, id: string): Promise<boolean> {
  const node = await lockNode(context, id);
  if (typeof node === "string") return node === "gone";
  const { state, allocatedTo, provider } = node.record;
  if (state !== "ready" || allocatedTo !== null) {
    await node.held.release();
    return false;
  }
  context.log.info({ node: id, provider }, "takes over a host of a provider that nobody serves");
  await removeRecord(context, node).catch(async (error) => {
    await node.held.release();
    throw error;
  });
  return true;
}

function loginOf(username: unknown, address: string | null | undefined, port: unknown): string {
  return `${username ?? ""}@${address?.toLowerCase() ?? ""}:${port ?? ""}`;
}
