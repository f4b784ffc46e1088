import type { Step, StepContext, Tag } from "@nodeyard/driver";
import type { OpenstackPoolOwn } from "../config.ts";
import { CALL_MS, GONE_MS, type Workshop } from "./create.ts";

/** Unmakes the machine of a tag; see `Provider.remove`. */
export async function* removeMachine(
  shop: Workshop,
  tag: Tag,
  { signal, externalId }: StepContext,
): AsyncGenerator<Step, void, void> {
  const { servers, config, cloud, floatingIps } = shop;
  yield { step: "find", deadlineMs: CALL_MS };
  const server = await servers.existing(tag, externalId, signal);
  if (cloud.floatingIps && mayHaveFloatingIp(shop, tag)) {
    yield { step: "floating-ip", deadlineMs: CALL_MS };
    await floatingIps.removeOf(tag, signal);
  }
  if (server !== undefined) {
    yield { step: "delete", deadlineMs: CALL_MS };
    await servers.delete(server.id, signal);
    yield { step: "gone", deadlineMs: GONE_MS };
    await servers.gone(server.id, `${config.name}: node ${tag.nodeId}`, signal, server);
  }
  servers.forget(tag);
}

/** A pool that never asks for one leaves none; should it have asked before a reload, the leak sweep finds its mark. */
function mayHaveFloatingIp({ config }: Workshop, tag: Tag): boolean {
  const pool = config.pools.find(({ name }) => name === tag.pool);
  return pool === undefined || (pool.own as OpenstackPoolOwn).autoFloatingIp;
}
