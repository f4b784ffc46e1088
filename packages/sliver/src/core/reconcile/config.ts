import { createHash } from "node:crypto";
import type { Rspec } from "@nodeyard/sliver-protocol";
import type { Limits } from "../limits.ts";
import type { SliverRecord } from "../record.ts";

/** All that a back end needs to make one sliver and to keep it as it should be. */
export interface SliverConfig {
  readonly name: string;
  readonly generation: number;
  readonly incarnation: number;
  /** From 1; users, paths, ids, class ids and rules derive from it alone, never from the name. */
  readonly index: number;
  /** `type base64`, nothing else. */
  readonly keys: readonly string[];
  readonly image?: string;
  readonly initscript: string;
  /** False: nobody may log in and nothing may run. */
  readonly enabled: boolean;
  readonly effective: Rspec;
  readonly limits: Limits;
  /** Cores it may run on; absent where cores are not handed out. */
  readonly cores?: readonly number[];
  /** Of everything above: equal digests need no configure. */
  readonly digest: string;
}

export function configOf(
  record: SliverRecord,
  index: number,
  effective: Rspec,
  limits: Limits,
  cores: readonly number[] | undefined,
): SliverConfig {
  const content = {
    name: record.name,
    generation: record.generation,
    incarnation: record.local.incarnation,
    index,
    keys: record.keys,
    ...(record.image === undefined ? {} : { image: record.image }),
    initscript: record.initscript,
    enabled: effective.enabled > 0,
    effective,
    limits,
    ...(cores === undefined ? {} : { cores }),
  };
  const digest = createHash("sha256").update(JSON.stringify(content)).digest("hex");
  return { ...content, digest };
}
