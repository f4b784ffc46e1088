import { type Reader, toNumber } from "@nodeyard/driver";
import { type FakeKnobs, INSTANT, type Latency } from "../knobs.ts";

/** Compiles the `fake:` mapping; what it does not name is as in INSTANT. */
export function readKnobs(provider: Reader): FakeKnobs {
  const from = provider.inner("fake");
  const quota = from.inner("quota");
  const [latency, errors, faults] = [from.inner("latency"), from.inner("errors"), from.inner("faults")];
  const counted = (key: string) => countOf(faults.number(key, 0));
  return {
    seed: from.number("seed", INSTANT.seed),
    quota: {
      ...limit("instances", quota.number("instances", INSTANT.quota.instances ?? -1)),
      ...limit("cores", quota.number("cores", INSTANT.quota.cores ?? -1)),
      ...limit("ram", quota.number("ram", INSTANT.quota.ram ?? -1)),
    },
    availabilityZones: from.has("availability-zones")
      ? from.texts("availability-zones")
      : INSTANT.availabilityZones,
    capacity: amounts(from.inner("capacity")),
    latency: {
      create: readLatency(latency, "create"),
      boot: readLatency(latency, "boot"),
      delete: readLatency(latency, "delete"),
      read: readLatency(latency, "read"),
    },
    repeatsCreates: INSTANT.repeatsCreates,
    errors: {
      create: errors.number("create", 0),
      delete: errors.number("delete", 0),
      find: errors.number("find", 0),
      list: errors.number("list", 0),
    },
    faults: {
      createFails: counted("create-fails"),
      createFailsWithExternalId: counted("create-fails-with-external-id"),
      neverActive: counted("never-active"),
      endsInError: counted("ends-in-error"),
      deleteFails: counted("delete-fails"),
      deleteLeavesRecord: counted("delete-leaves-record"),
    },
    consistencyDelayMs: from.number("consistency-delay", 0),
  };
}

function countOf(value: number): number {
  return value < 0 ? Number.POSITIVE_INFINITY : value;
}

/** A negative limit is none; its name is then left out. */
function limit(name: string, value: number): Readonly<Record<string, number>> {
  return value < 0 ? {} : { [name]: value };
}

function amounts(from: Reader): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.keys(from.raw).map((name) => [name, from.number(name, Number.POSITIVE_INFINITY)]),
  );
}

function readLatency(from: Reader, key: string): Latency {
  const value = from.raw[key];
  if (value === undefined || value === null) return { minMs: 0, maxMs: 0 };
  const [minMs, maxMs] = (Array.isArray(value) ? value : [value, value]).map(toNumber);
  if (minMs !== undefined && maxMs !== undefined && minMs >= 0 && maxMs >= minMs) return { minMs, maxMs };
  from.error(key, "must be milliseconds, or a list of the least and the most of them");
  return { minMs: 0, maxMs: 0 };
}
