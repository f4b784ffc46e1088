import {
  type LoadContext,
  Reader,
  readCommonProvider,
  readLaunchLimits,
  readMachinePools,
} from "@nodeyard/driver";
import type { SliverProviderConfig } from "../own.ts";
import { readKeys, readLabel } from "./label.ts";
import { readMachines } from "./machines.ts";

/** Compiles a provider mapping. Every default is applied here. */
export function load(
  raw: Readonly<Record<string, unknown>>,
  context: LoadContext,
): SliverProviderConfig | undefined {
  const from = new Reader(raw, [], (finding) => context.report(finding));
  const common = readCommonProvider(from, "sliver");
  const signingKeys = from.needed("signing-keys");
  if (signingKeys === undefined) return undefined;
  if (!signingKeys.startsWith("/"))
    from.error("signing-keys", `is ${signingKeys}, which is a relative path; write an absolute one`);
  const epoch = from.number("epoch", 1);
  if (!Number.isSafeInteger(epoch) || epoch < 1)
    from.error("epoch", `is ${epoch}; write a whole number from 1 on`);
  const keys = readKeys(from);
  return {
    ...common,
    pools: readMachinePools(from, common, context, {
      limits: { millicores: "max-millicores", ram: "max-ram" },
      label: (at) => readLabel(at, keys),
    }),
    ...readLaunchLimits(from, { launch: 1800 }),
    own: { machines: readMachines(from), signingKeys, epoch },
  };
}
