import { Reader } from "@nodeyard/driver";
import type { Source } from "../source.ts";
import type { Config, DriverRegistry } from "../types.ts";
import { compileBuilder } from "./builder.ts";
import { compileDiskimages } from "./diskimages.ts";
import { ageMs, compileLabels, compileTenantLimits } from "./labels.ts";
import { compileProviders } from "./providers.ts";
import { compileZookeeper } from "./zookeeper.ts";

/** Compiles what the loader accepts. What keeps it from that are error findings of source "load". */
export function compile(main: Source, secure: Source | undefined, drivers: DriverRegistry): Config {
  const from = readerOf(main);
  const secureFrom = secure?.raw === undefined ? undefined : readerOf(secure);
  const labels = compileLabels(from);
  const diskimages = compileDiskimages(from);
  if (secureFrom !== undefined) checkSecureDiskimages(secureFrom, new Set(diskimages.keys()));
  const webapp = from.inner("webapp");
  const builder = compileBuilder(from, diskimages, secureFrom);
  return {
    zookeeper: compileZookeeper(from, secureFrom),
    labels,
    diskimages,
    builder,
    providers: compileProviders(from, {
      labels,
      diskimages,
      drivers,
      file: main.findings.file,
      report: (severity, path, message) => main.findings.add(severity, "load", path, message),
    }),
    maxHoldAgeMs: ageMs(from, "max-hold-age"),
    failedLaunchesPerHour: Math.max(1, from.number("max-failed-launches-per-hour", 60)),
    journal: {
      maxAgeMs: Math.max(60, from.number("journal-max-age", 604_800)) * 1_000,
      maxBytes: Math.max(5, from.number("journal-max-size", 500)) * 1_000_000,
    },
    tenantLimits: compileTenantLimits(from),
    webapp: {
      port: webapp.number("port", 8005),
      listenAddress: webapp.text("listen_address", "0.0.0.0"),
      isNamed: from.has("webapp"),
    },
  };
}

function readerOf({ raw, findings }: Source): Reader {
  return new Reader(raw ?? {}, [], ({ severity, path, message }) =>
    findings.add(severity, "load", path, message),
  );
}

/** Secure environment variables may only be for images that are built (docs/contract/config.md, "Secure file"). */
function checkSecureDiskimages(secure: Reader, built: ReadonlySet<string>): void {
  for (const from of secure.mappings("diskimages", true)) {
    const name = from.needed("name");
    if (name !== undefined && !built.has(name)) {
      from.error(
        "name",
        `names diskimage ${name}, which the main file does not build; add it there, or remove it here`,
      );
    }
    if (from.mapping("env-vars") === null) from.error("env-vars", "must be a mapping");
  }
}
