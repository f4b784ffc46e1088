import { type ConfigFinding, Reader, type Resources } from "@nodeyard/driver";
import type { Budget } from "@nodeyard/scheduler";
import type { Findings } from "../findings.ts";
import type { Source } from "../source.ts";
import { type LabelSettings, secure as secureSection, type Top, tenantLimits, top } from "../table.ts";
import type { Config, DriverRegistry } from "../types.ts";
import { compileDiskimages } from "./diskimages.ts";
import { compileProviders } from "./providers.ts";
import { compileUploads } from "./uploads.ts";
import { compileZookeeper } from "./zookeeper.ts";

/**
 * Compiles what the loader accepts. Whatever keeps it from that is an error finding of source "load": then the result is not to be
 * used, and its caller withholds it. Never throws for what a file can hold. `secure`: the file of `-s`; undefined: none is named.
 */
export function compile(main: Source, secure: Source | undefined, drivers: DriverRegistry): Config {
  const at = readerOf(main);
  // Neither file has a key that it needs.
  const values = top.read(at)!;
  const secureAt = secure?.raw === undefined ? undefined : readerOf(secure);
  const secrets = secureAt && { ...secureSection.read(secureAt)!, at: secureAt };
  const labels = labelsOf(values);
  const images = compileDiskimages(values, secrets);
  const { maxHoldAgeMs, failedLaunchesPerHour, journal, webapp, builder, providers, logLevels } = values;
  return {
    zookeeper: compileZookeeper({ ...values, at }, secrets),
    labels,
    diskimages: new Map(
      Array.from(images, ([name, { username, pythonPath, shellType }]) => [
        name,
        { name, username, pythonPath, shellType },
      ]),
    ),
    builder: { ...builder, images, uploads: compileUploads(at.raw) },
    providers: compileProviders(at, providers, {
      labels,
      diskimages: images,
      drivers,
      file: main.findings.file,
      report: (finding, source) => reportTo(main.findings, finding, source),
    }),
    maxHoldAgeMs,
    failedLaunchesPerHour,
    journal,
    // Absent areas have the level of the command line.
    logLevels: Object.fromEntries(Object.entries(logLevels).filter(([, level]) => level !== undefined)),
    tenantLimits: tenantLimitsOf(values),
    budgets: budgetsOf(values),
    shares: sharesOf(values),
    webapp,
  };
}

/** A file that cannot be parsed is read as an empty one; its syntax errors are findings already. */
function readerOf({ raw, findings }: Source): Reader {
  return new Reader(raw ?? {}, [], (finding) => reportTo(findings, finding));
}

function reportTo(
  findings: Findings,
  { severity, path, message }: ConfigFinding,
  source: "load" | "machine" = "load",
): void {
  if (severity === "effect") findings.add("warning", "effect", path, message);
  else findings.add(severity, source, path, message);
}

/** Labels by name; of two with one name the last counts, as in Nodepool, with a warning. */
function labelsOf({ labels: listed }: Top): ReadonlyMap<string, LabelSettings> {
  const labels = new Map<string, LabelSettings>();
  for (const { at, ...label } of listed) {
    if (labels.has(label.name)) at.warn("name", `repeats label ${label.name}; the last one counts`);
    labels.set(label.name, label);
  }
  return labels;
}

/** Undefined: the file has no shares. */
function sharesOf({ shares }: Top): Config["shares"] {
  if (shares === null) return undefined;
  const [tenants, clients] = [shares.tenants, shares.clients].map((listed) => {
    const weights = new Map<string, number>();
    for (const { at, name, weight } of listed) {
      if (weights.has(name)) at.warn("name", `repeats ${name}; the last one counts`);
      weights.set(name, weight);
    }
    return weights;
  });
  return { tenants: tenants!, clients: clients! };
}

/** By tenant; tenants without one are left out. */
function budgetsOf({ tenantResourceLimits }: Top): Config["budgets"] {
  const budgets = new Map<string, Budget>();
  for (const { tenantName, budget } of tenantResourceLimits) {
    // Of two entries of one tenant the last counts, as for its limits.
    if (budget == null) budgets.delete(tenantName);
    else budgets.set(tenantName, budget);
  }
  return budgets;
}

/** By tenant (docs/contract/config.md, "Tenant limits"); keys of no name of ours are resources of their own name. */
function tenantLimitsOf({ tenantResourceLimits }: Top): ReadonlyMap<string, Resources> {
  const known: Readonly<Record<string, { readonly parts: { readonly name: string } }>> = tenantLimits;
  const limits = new Map<string, Resources>();
  for (const { at, tenantName } of tenantResourceLimits) {
    if (limits.has(tenantName)) at.warn("tenant-name", `repeats tenant ${tenantName}; the last one counts`);
    const amounts: Record<string, number> = {};
    for (const key of Object.keys(at.raw)) {
      if (key === "tenant-name" || key === "budget" || !at.has(key)) continue;
      const resource = Object.hasOwn(known, key) ? known[key]!.parts.name : key;
      if (key.startsWith("max-") && resource === key)
        at.warn(
          key,
          `limits a resource of the name ${key}, which no driver has; known: ${Object.keys(known).join(", ")}`,
        );
      amounts[resource] = at.number(key, Number.POSITIVE_INFINITY);
    }
    limits.set(tenantName, amounts);
  }
  return limits;
}
