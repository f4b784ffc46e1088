import { type ConfigFinding, type LoadContext, type ProviderConfig, Reader } from "@nodeyard/driver";
import type { DiskimageConfig } from "../diskimage-table.ts";
import type { Path } from "../findings.ts";
import { resolveProvider } from "../providers.ts";
import type { LabelSettings } from "../table.ts";
import type { DriverRegistry } from "../types.ts";

/** What drivers may refer to, and where their findings go. */
export interface ProviderFacts {
  readonly labels: ReadonlyMap<string, LabelSettings>;
  readonly diskimages: ReadonlyMap<string, DiskimageConfig>;
  readonly drivers: DriverRegistry;
  /** Path of the configuration. */
  readonly file: string;
  /** `machine`: another installation may load it. */
  report(finding: ConfigFinding, source?: "load" | "machine"): void;
}

/** Providers in the order of the file, each compiled by its driver. A provider with errors is left out; its findings are reported. */
export function compileProviders(
  main: Reader,
  listed: readonly unknown[],
  facts: ProviderFacts,
): readonly ProviderConfig[] {
  const hosts = new Map<string, string>();
  const compiled = listed.flatMap((raw, index) => compileOne(raw, index, facts, hosts));
  const keys = new Map<string, string>();
  const names = new Set<string>();
  for (const provider of compiled) {
    if (names.has(provider.name))
      main.error("providers", `has two with the name ${provider.name}; rename one`);
    names.add(provider.name);
    for (const pool of provider.pools) refuseClash(main, keys, provider.name, pool.name);
  }
  return compiled;
}

/** None or one. Paths of the driver's findings begin at the provider. */
function compileOne(
  raw: unknown,
  index: number,
  facts: ProviderFacts,
  hosts: Map<string, string>,
): readonly ProviderConfig[] {
  const say = (severity: "error" | "warning", source?: "machine") => (path: Path, message: string) =>
    facts.report({ severity, path, message }, source);
  const error = say("error");
  const resolved = resolveProvider(raw, index, facts.drivers, facts.file, {
    both: error,
    load: say("error", "machine"),
    warn: say("warning"),
  });
  if (resolved === undefined) return [];
  const report: LoadContext["report"] = (finding) =>
    facts.report({ ...finding, path: [...resolved.path, ...finding.path] });
  // The driver is not installed: what the loader of Nodepool says of its keys is all that can be said.
  if (!("load" in resolved.config)) {
    resolved.config.read(new Reader(resolved.raw, [], report));
    return [];
  }
  const context: LoadContext = {
    labels: new Set(facts.labels.keys()),
    diskimages: new Map(
      Array.from(facts.diskimages, ([name, { username, pythonPath, shellType }]) => [
        name,
        { username, pythonPath, shellType },
      ]),
    ),
    hosts,
    report,
  };
  const config = resolved.config.load(resolved.raw, context);
  // A driver writes its own name there; the launcher asks the registry, which knows it by what the file says.
  return config === undefined ? [] : [{ ...config, driver: resolved.driver }];
}

/** Python launchers and metrics know a pool as `<provider>-<pool>`, which is ambiguous when names contain dashes. */
function refuseClash(main: Reader, keys: Map<string, string>, provider: string, pool: string): void {
  const [key, here] = [`${provider}-${pool}`, `pool ${pool} of ${provider}`];
  const other = keys.get(key);
  if (other !== undefined && other !== here) {
    main.warn("providers", `has ${here} and ${other}, which share the name ${key} in metrics; rename one`);
  }
  keys.set(key, here);
}
