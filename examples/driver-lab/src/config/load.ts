import {
  type LabelConfig,
  type LoadContext,
  labelMap,
  Reader,
  readCommonPool,
  readCommonProvider,
  uniquePools,
} from "@nodeyard/driver";
import type { LabLabelOwn, LabPoolConfig, LabProviderConfig } from "../own.ts";

/** Compiles a provider mapping. Every default is applied here. */
export function load(
  raw: Readonly<Record<string, unknown>>,
  context: LoadContext,
): LabProviderConfig | undefined {
  const from = new Reader(raw, [], (finding) => context.report(finding));
  const common = readCommonProvider(from, "lab");
  const folder = from.needed("folder");
  if (folder === undefined) return undefined;
  if (!folder.startsWith("/"))
    from.error("folder", `is ${folder}, which is a relative path; write an absolute one`);
  const pools = from.mappings("pools").flatMap((pool): LabPoolConfig[] => {
    const base = readCommonPool(pool, common);
    if (base === undefined) return [];
    const labels = pool.mappings("labels").flatMap((at) => {
      const label = readLabel(at);
      return label === undefined ? [] : [[at, label] as const];
    });
    return [
      {
        ...base,
        labels: labelMap(pool, labels, context),
        availabilityZones: [],
        useInternalIp: false,
        own: undefined,
      },
    ];
  });
  return {
    ...common,
    pools: uniquePools(from, pools),
    launchTimeoutMs: from.milliseconds("launch-timeout", 30),
    bootTimeoutMs: from.milliseconds("boot-timeout", 10),
    launchAttempts: Math.max(1, Math.floor(from.number("launch-retries", 3))),
    own: { folder, maxBoards: from.number("max-boards", Number.POSITIVE_INFINITY) },
  };
}

function readLabel(from: Reader): LabelConfig<LabLabelOwn> | undefined {
  const name = from.needed("name");
  if (name === undefined) return undefined;
  return {
    name,
    hostKeyChecking: true,
    // No SSH there: the launcher tries the port that the machine names, and asks for no host key.
    connection: { username: null, pythonPath: null, shellType: null, type: "raw", port: 0 },
    image: null,
    own: { greeting: from.text("greeting", name) },
  };
}
