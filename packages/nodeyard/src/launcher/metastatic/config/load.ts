import {
  type LoadContext,
  labelMap,
  Reader,
  readCommonPool,
  readCommonProvider,
  uniquePools,
} from "@nodeyard/driver";
import { readIsolation } from "../../../slivers/index.ts";
import type { MetastaticLabel, MetastaticPool, MetastaticProvider } from "./own.ts";

/** What a record says of itself before its backing node is known (docs/contract/drivers.md, "Metastatic records"). */
const UNKNOWN = "unknown";

/** Compiles a provider mapping; every default is applied here. */
export function load(raw: Readonly<Record<string, unknown>>, context: LoadContext): MetastaticProvider {
  const from = new Reader(raw, [], (finding) => context.report(finding));
  const common = readCommonProvider(from, "metastatic");
  const agreed = new Map<string, MetastaticLabel>();
  const pools = from.mappings("pools").flatMap((pool): MetastaticPool[] => {
    const base = readCommonPool(pool, common);
    if (base === undefined) return [];
    const checking = pool.flag("host-key-checking", false);
    const labels = pool.mappings("labels").flatMap((at) => {
      const label = readLabel(at, checking);
      if (label === undefined) return [];
      demandAgreement(at, agreed, label);
      return [[at, label] as const];
    });
    return [
      {
        ...base,
        labels: labelMap(pool, labels, context),
        availabilityZones: [],
        useInternalIp: false,
        own: {},
      },
    ];
  });
  return {
    ...common,
    pools: uniquePools(from, pools),
    launchTimeoutMs: from.milliseconds("launch-timeout", 3600),
    bootTimeoutMs: from.milliseconds("boot-timeout", 120),
    launchAttempts: Math.max(1, Math.floor(from.number("launch-retries", 3))),
    own: {},
  };
}

function readLabel(from: Reader, checking: boolean): MetastaticLabel | undefined {
  const name = from.needed("name");
  const backingLabel = from.needed("backing-label");
  if (name === undefined || backingLabel === undefined) return undefined;
  if (name === backingLabel)
    from.error("backing-label", `names ${name} itself; a slot is cut out of a node of another label`);
  const maxAgeMs = from.milliseconds("max-age", 0);
  const minRetentionMs = from.milliseconds("min-retention-time", 0);
  if (maxAgeMs > 0 && maxAgeMs < minRetentionMs)
    from.error("max-age", "is below min-retention-time; raise it, or lower min-retention-time");
  const sliver = readIsolation(from);
  return {
    name,
    // A sliver has a key of its own, and nobody else could tell its user which.
    hostKeyChecking: from.flag("host-key-checking", sliver !== undefined || checking),
    connection: { username: UNKNOWN, pythonPath: UNKNOWN, shellType: UNKNOWN, type: UNKNOWN, port: 22 },
    image: { kind: "cloud-image", name: "unused" },
    own: {
      backingLabel,
      slots: readSlots(from),
      graceMs: Math.max(0, from.milliseconds("grace-time", 60)),
      minRetentionMs: Math.max(0, minRetentionMs),
      maxAgeMs: maxAgeMs > 0 ? maxAgeMs : Number.POSITIVE_INFINITY,
      ...(sliver === undefined ? {} : { sliver }),
    },
  };
}

function readSlots(from: Reader): number {
  const slots = Math.floor(from.number("max-parallel-jobs", 1));
  if (slots >= 1) return slots;
  from.warn("max-parallel-jobs", `is ${slots}: the label is never served; give it at least one slot`);
  return 0;
}

/** Labels that share a backing label must say the same about it (docs/contract/config.md, "Metastatic keys"). */
function demandAgreement(from: Reader, agreed: Map<string, MetastaticLabel>, label: MetastaticLabel): void {
  const { own } = label;
  const first = agreed.get(own.backingLabel);
  if (first === undefined) {
    agreed.set(own.backingLabel, label);
    return;
  }
  const keys = ["slots", "graceMs", "minRetentionMs", "maxAgeMs"] as const;
  if (keys.every((key) => first.own[key] === own[key])) return;
  from.error(
    "backing-label",
    `shares ${own.backingLabel} with label ${first.name}: multiple label definitions for the same backing label must be identical; make max-parallel-jobs, grace-time, min-retention-time and max-age the same, or use another backing label`,
  );
}
